// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/model_series.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "server/metrics/metric_labels.h"
#include "server/metrics/request_counters.h"
#include "server/metrics/series.h"

namespace attendant {
namespace {

// The names of RejectReasonName, and MemoryBudgets::kRejected. Any other counts as the last, so
// that no label is made later.
constexpr std::array<const char*, 9> kReasonNames = {"queue_full", "too_large", "deadline",
                                                     "cancelled",  "draining",  "device_lost",
                                                     "infeasible", "memory",    "other"};

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

class ModelSeries final : public ModelMetrics {
 public:
  ModelSeries(MetricFamilies& families, const std::string& model)
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
    if (kind.has_value() && kMethods[RowIndex(method)].model != *kind) return;
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
    const prometheus::Labels model = {{"model", model_}};
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
    return phases_[RowIndex(method)][RowIndex(phase)].Get([&]() -> prometheus::Histogram& {
      return series_.Add(families_.request_duration_seconds,
                         {{"model", model_},
                          {"method", kMethods[RowIndex(method)].name},
                          {"phase", kPhases[RowIndex(phase)].name}},
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

}  // namespace

std::shared_ptr<ModelMetrics> MakeModelSeries(MetricFamilies& families, const std::string& model) {
  return std::make_shared<ModelSeries>(families, model);
}

}  // namespace attendant
