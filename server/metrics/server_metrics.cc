// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/server_metrics.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/text_serializer.h"
#include "server/metrics/device_metrics.h"
#include "server/metrics/metric_families.h"
#include "server/metrics/model_series.h"
#include "server/metrics/process_metrics.h"
#include "server/metrics/request_counters.h"

namespace attendant {
namespace {

// "accepted", and the names of RefusalName.
constexpr std::array<const char*, 4> kConnectionResults = {"accepted", "limit", "address_limit",
                                                           "descriptors"};

template <size_t size>
using Counters = std::array<prometheus::Counter*, size>;
template <size_t size>
using Gauges = std::array<prometheus::Gauge*, size>;

// A series for each row of a table, with its name as the value of `label`.
template <typename Metric, typename Enum, size_t size>
std::array<Metric*, size> AddAll(prometheus::Family<Metric>& family, const char* label,
                                 const std::array<LabelRow<Enum>, size>& rows) {
  std::array<Metric*, size> series;
  for (size_t i = 0; i < size; ++i) series[i] = &family.Add({{label, rows[i].name}});
  return series;
}

}  // namespace

struct ServerMetrics::Impl {
  prometheus::Registry registry;
  MetricFamilies families{registry};
  ProcessMetrics process;
  DeviceMetrics devices;
  RequestCounters unknown_model{families, ""};
  prometheus::Gauge& connections = families.connections.Add({});
  prometheus::Gauge& ready = families.ready.Add({});
  Counters<kRefusals.size()> refused = AddAll(families.refused_total, "reason", kRefusals);
  Counters<kHttpEnds.size()> http_connections =
      AddAll(families.http_connections_total, "result", kHttpEnds);
  Counters<kLogLines.size()> log_lines =
      AddAll(families.access_log_lines_total, "result", kLogLines);
  Counters<kSpanEnds.size()> spans = AddAll(families.spans_total, "result", kSpanEnds);
  Gauges<kReloadedFiles.size()> reload_failed =
      AddAll(families.reload_failed, "file", kReloadedFiles);
  prometheus::Counter& exports_taken = families.span_exports_total.Add({{"result", "ok"}});
  prometheus::Counter& exports_failed = families.span_exports_total.Add({{"result", "failed"}});

  struct Model {
    std::shared_ptr<ModelMetrics> metrics;
    bool removed = false;
  };
  // Series of the same labels are one: they must not go while a second set of them is made. So
  // metrics are made and freed under the lock, and freed only when nobody else uses them.
  void FreeRemoved() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    for (auto entry = models.begin(); entry != models.end();) {
      const bool unused = entry->second.removed && entry->second.metrics.use_count() == 1;
      entry = unused ? models.erase(entry) : std::next(entry);
    }
  }

  absl::Mutex mutex;
  std::map<std::string, Model> models ABSL_GUARDED_BY(mutex);
};

ServerMetrics::ServerMetrics(absl::string_view version) : impl_(std::make_unique<Impl>()) {
  for (const MethodRow& method : kMethods) {
    if (method.series == SeriesBegin::kWithModel) impl_->unknown_model.MakeAll(method.value);
  }
  for (const char* result : kConnectionResults) {
    impl_->families.connections_total.Add({{"result", result}});
  }
  impl_->families.build_info.Add({{"version", std::string(version)}, {"compiler", __VERSION__}})
      .Set(1);
}

ServerMetrics::~ServerMetrics() = default;

std::shared_ptr<ModelMetrics> ServerMetrics::ForModel(const std::string& name) {
  absl::MutexLock lock(&impl_->mutex);
  Impl::Model& model = impl_->models[name];
  model.removed = false;
  if (model.metrics == nullptr) {
    model.metrics = MakeModelSeries(impl_->families, name);
  }
  return model.metrics;
}

std::shared_ptr<ModelMetrics> ServerMetrics::FindModel(const std::string& name) const {
  absl::MutexLock lock(&impl_->mutex);
  const auto found = impl_->models.find(name);
  if (found == impl_->models.end() || found->second.removed) return nullptr;
  return found->second.metrics;
}

void ServerMetrics::RemoveModel(const std::string& name) {
  absl::MutexLock lock(&impl_->mutex);
  const auto found = impl_->models.find(name);
  if (found == impl_->models.end()) return;
  found->second.removed = true;
  impl_->FreeRemoved();
}

void ServerMetrics::CountUnknownModel(Method method, absl::StatusCode code) {
  impl_->unknown_model.Count(method, code);
}

void ServerMetrics::CountConnection(absl::string_view result) {
  impl_->families.connections_total.Add({{"result", std::string(result)}}).Increment();
}

void ServerMetrics::SetConnections(int64_t open) {
  impl_->connections.Set(static_cast<double>(open));
}

void ServerMetrics::CountHttpConnection(HttpEnd result) {
  impl_->http_connections[RowIndex(result)]->Increment();
}

void ServerMetrics::SetReady(bool ready) { impl_->ready.Set(ready ? 1 : 0); }

void ServerMetrics::CountRefused(Refusal reason) { impl_->refused[RowIndex(reason)]->Increment(); }

void ServerMetrics::CountAccessLogLine(LogLine result) {
  impl_->log_lines[RowIndex(result)]->Increment();
}

void ServerMetrics::CountSpans(SpanEnd result, int64_t spans) {
  impl_->spans[RowIndex(result)]->Increment(static_cast<double>(spans));
}

void ServerMetrics::CountSpanExport(bool taken) {
  (taken ? impl_->exports_taken : impl_->exports_failed).Increment();
}

void ServerMetrics::SetReloadFailed(ReloadedFile file, bool failed) {
  impl_->reload_failed[RowIndex(file)]->Set(failed ? 1 : 0);
}

void ServerMetrics::AddDeviceSource(const std::string& model, DeviceSource source) {
  impl_->devices.Add(model, std::move(source));
}

std::vector<ModelSample> ServerMetrics::Sample() const {
  std::vector<ModelSample> samples;
  absl::MutexLock lock(&impl_->mutex);
  for (const auto& [name, model] : impl_->models) {
    if (model.removed) continue;
    samples.push_back(model.metrics->Sample());
    samples.back().model = name;
  }
  return samples;
}

std::string ServerMetrics::Scrape() const {
  {
    absl::MutexLock lock(&impl_->mutex);
    impl_->FreeRemoved();
  }
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  for (const prometheus::Collectable* more :
       std::initializer_list<const prometheus::Collectable*>{&impl_->devices, &impl_->process}) {
    std::vector<prometheus::MetricFamily> collected = more->Collect();
    families.insert(families.end(), std::make_move_iterator(collected.begin()),
                    std::make_move_iterator(collected.end()));
  }
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

}  // namespace attendant
