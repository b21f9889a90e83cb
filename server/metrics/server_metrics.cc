// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/server_metrics.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/text_serializer.h"
#include "server/metrics/device_metrics.h"
#include "server/metrics/metric_families.h"
#include "server/metrics/process_metrics.h"
#include "server/metrics/series.h"

namespace attendant {
namespace {

using prometheus::Labels;

// The names of RejectReasonName, and MemoryBudgets::kRejected. Any other counts as the last, so
// that no label is made later.
constexpr std::array<const char*, 9> kReasonNames = {"queue_full", "too_large", "deadline",
                                                     "cancelled",  "draining",  "device_lost",
                                                     "infeasible", "memory",    "other"};
// "accepted", and the names of RefusalName.
constexpr std::array<const char*, 4> kConnectionResults = {"accepted", "limit", "address_limit",
                                                           "descriptors"};
constexpr size_t kNumCodes = 17;  // gRPC's, 0 to 16

template <typename Enum>
constexpr size_t Index(Enum value) {
  return static_cast<size_t>(value);
}

// Codes outside gRPC's range, which only a broken caller has, count as UNKNOWN.
size_t CodeIndex(absl::StatusCode code) {
  const size_t index = Index(code);
  return index < kNumCodes ? index : Index(absl::StatusCode::kUnknown);
}

// requests_total of one model. Thread-safe.
class RequestCounters {
 public:
  RequestCounters(MetricFamilies& families, std::string model)
      : family_(families.requests_total), model_(std::move(model)) {}

  void MakeAll(Method method) {
    for (size_t code = 0; code < kNumCodes; ++code) Find(method, code);
  }
  void Count(Method method, absl::StatusCode code) { Find(method, CodeIndex(code)).Increment(); }

  void AddTo(ModelSample& sample) const {
    for (const auto& codes : counters_) {
      for (size_t code = 0; code < kNumCodes; ++code) {
        const prometheus::Counter* counter = codes[code].Find();
        if (counter != nullptr) (code == 0 ? sample.requests : sample.failed) += counter->Value();
      }
    }
  }

 private:
  prometheus::Counter& Find(Method method, size_t code) {
    return counters_[Index(method)][code].Get([&]() -> prometheus::Counter& {
      return series_.Add(family_,
                         {{"model", model_},
                          {"method", kMethods[Index(method)].name},
                          {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}});
    });
  }

  SeriesSet series_;
  prometheus::Family<prometheus::Counter>& family_;
  const std::string model_;
  std::array<std::array<LazySeries<prometheus::Counter>, kNumCodes>, kMethods.size()> counters_;
};

void AddTo(const prometheus::Histogram& histogram, ModelSample::Histogram& sample) {
  const prometheus::ClientMetric::Histogram read = histogram.Collect().histogram;
  sample.counts.resize(read.bucket.size());
  uint64_t below = 0;
  for (size_t i = 0; i < read.bucket.size(); ++i) {
    sample.counts[i] += read.bucket[i].cumulative_count - below;
    below = read.bucket[i].cumulative_count;
  }
  sample.sum += read.sample_sum;
}

class PrometheusModelMetrics final : public ModelMetrics {
 public:
  PrometheusModelMetrics(MetricFamilies& families, const std::string& model)
      : families_(families),
        model_(model),
        requests_(families, model),
        valid_tokens_(series_.Add(families.tokens_total, {{"model", model}, {"kind", "valid"}})),
        padding_tokens_(
            series_.Add(families.tokens_total, {{"model", model}, {"kind", "padding"}})),
        sequence_tokens_(series_.Add(families.sequence_tokens, {{"model", model}}, TokenBuckets())),
        inflight_(series_.Add(families.inflight_requests, {{"model", model}})),
        batch_tokens_(series_.Add(families.batch_tokens, {{"model", model}}, TokenBuckets())),
        batch_requests_(series_.Add(families.batch_requests, {{"model", model}}, RequestBuckets())),
        batches_(series_.Add(families.batches_total, {{"model", model}})),
        queue_tokens_(series_.Add(families.queue_tokens, {{"model", model}})),
        queue_requests_(series_.Add(families.queue_requests, {{"model", model}})),
        stalled_workers_(series_.Add(families.stalled_workers, {{"model", model}})),
        lost_workers_(series_.Add(families.lost_workers, {{"model", model}})),
        failed_(series_.Add(families.model_failed, {{"model", model}})) {
    for (size_t i = 0; i < kReasonNames.size(); ++i) {
      rejected_[i] =
          &series_.Add(families.rejected_total, {{"model", model}, {"reason", kReasonNames[i]}});
    }
  }

  void SetKind(ModelKind kind) override {
    for (const MethodRow& method : kMethods) {
      if (method.model != kind || method.series != SeriesBegin::kWithModel) continue;
      requests_.MakeAll(method.value);
      FindPhase(method.value, Phase::kTotal);
    }
    kind_ = kind;
  }

  void ObservePhase(Method method, Phase phase, absl::Duration duration) override {
    const std::optional<ModelKind> kind = kind_;
    if (kind.has_value() && kMethods[Index(method)].model != *kind) return;
    FindPhase(method, phase).Observe(absl::ToDoubleSeconds(duration));
  }
  void CountRequest(Method method, absl::StatusCode code) override {
    requests_.Count(method, code);
  }
  void CountTokens(int64_t valid, int64_t padding) override {
    valid_tokens_.Increment(static_cast<double>(valid));
    padding_tokens_.Increment(static_cast<double>(padding));
  }
  void ObserveSequence(int64_t tokens) override {
    sequence_tokens_.Observe(static_cast<double>(tokens));
  }
  void AddInflight(int delta) override { inflight_.Increment(delta); }

  void ObserveBatch(int64_t tokens, int64_t requests) override {
    batches_.Increment();
    batch_tokens_.Observe(static_cast<double>(tokens));
    batch_requests_.Observe(static_cast<double>(requests));
  }
  void CountRejected(absl::string_view reason) override {
    size_t index = 0;
    while (index + 1 < kReasonNames.size() && reason != kReasonNames[index]) ++index;
    rejected_[index]->Increment();
  }
  void AddQueue(int64_t tokens, int64_t requests) override {
    queue_tokens_.Increment(static_cast<double>(tokens));
    queue_requests_.Increment(static_cast<double>(requests));
  }
  void AddStalledWorkers(int workers) override { stalled_workers_.Increment(workers); }
  void AddLostWorkers(int workers) override { lost_workers_.Increment(workers); }

  void SetLoaded(const ModelLoadInfo& loaded) override {
    prometheus::Gauge* info =
        &series_.Add(families_.model_loaded_info, {{"model", model_},
                                                   {"dtype", loaded.dtype},
                                                   {"backend", loaded.backend},
                                                   {"isa", loaded.isa}});
    info->Set(1);
    prometheus::Gauge* const former = loaded_info_.exchange(info);
    if (former != nullptr && former != info) series_.Remove(former);
    const Labels model = {{"model", model_}};
    const auto set = [&](prometheus::Family<prometheus::Gauge>& family, double value) {
      series_.Add(family, model).Set(value);
    };
    set(families_.model_load_seconds, absl::ToDoubleSeconds(loaded.load_time));
    set(families_.model_weight_bytes, static_cast<double>(loaded.weight_bytes));
    set(families_.model_arena_bytes, static_cast<double>(loaded.arena_bytes));
  }

  void SetNotLoaded() override {
    const prometheus::Gauge* const info = loaded_info_.exchange(nullptr);
    if (info != nullptr) series_.Remove(info);
  }

  void SetFailed(bool failed) override { failed_.Set(failed ? 1 : 0); }

  ModelSample Sample() const override {
    ModelSample sample{.tokens = valid_tokens_.Value(),
                       .padding_tokens = padding_tokens_.Value(),
                       .inflight = inflight_.Value(),
                       .queue_tokens = queue_tokens_.Value(),
                       .queue_requests = queue_requests_.Value()};
    requests_.AddTo(sample);
    for (const prometheus::Counter* rejected : rejected_) sample.rejected += rejected->Value();
    for (const auto& phases : phases_) {
      for (size_t phase = 0; phase < phases.size(); ++phase) {
        const prometheus::Histogram* histogram = phases[phase].Find();
        if (histogram != nullptr) AddTo(*histogram, sample.phases[phase]);
      }
    }
    AddTo(batch_tokens_, sample.batch_tokens);
    AddTo(batch_requests_, sample.batch_requests);
    return sample;
  }

 private:
  prometheus::Histogram& FindPhase(Method method, Phase phase) {
    return phases_[Index(method)][Index(phase)].Get([&]() -> prometheus::Histogram& {
      return series_.Add(families_.request_duration_seconds,
                         {{"model", model_},
                          {"method", kMethods[Index(method)].name},
                          {"phase", kPhases[Index(phase)].name}},
                         DurationBuckets());
    });
  }

  MetricFamilies& families_;
  const std::string model_;
  SeriesSet series_;
  std::atomic<prometheus::Gauge*> loaded_info_{nullptr};
  std::atomic<std::optional<ModelKind>> kind_{std::nullopt};
  std::array<std::array<LazySeries<prometheus::Histogram>, kPhases.size()>, kMethods.size()>
      phases_;
  RequestCounters requests_;
  std::array<prometheus::Counter*, kReasonNames.size()> rejected_{};
  prometheus::Counter& valid_tokens_;
  prometheus::Counter& padding_tokens_;
  prometheus::Histogram& sequence_tokens_;
  prometheus::Gauge& inflight_;
  prometheus::Histogram& batch_tokens_;
  prometheus::Histogram& batch_requests_;
  prometheus::Counter& batches_;
  prometheus::Gauge& queue_tokens_;
  prometheus::Gauge& queue_requests_;
  prometheus::Gauge& stalled_workers_;
  prometheus::Gauge& lost_workers_;
  prometheus::Gauge& failed_;
};

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
    model.metrics = std::make_shared<PrometheusModelMetrics>(impl_->families, name);
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
  impl_->http_connections[Index(result)]->Increment();
}

void ServerMetrics::SetReady(bool ready) { impl_->ready.Set(ready ? 1 : 0); }

void ServerMetrics::CountRefused(Refusal reason) { impl_->refused[Index(reason)]->Increment(); }

void ServerMetrics::CountAccessLogLine(LogLine result) {
  impl_->log_lines[Index(result)]->Increment();
}

void ServerMetrics::CountSpans(SpanEnd result, int64_t spans) {
  impl_->spans[Index(result)]->Increment(static_cast<double>(spans));
}

void ServerMetrics::CountSpanExport(bool taken) {
  (taken ? impl_->exports_taken : impl_->exports_failed).Increment();
}

void ServerMetrics::SetReloadFailed(ReloadedFile file, bool failed) {
  impl_->reload_failed[Index(file)]->Set(failed ? 1 : 0);
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
