// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "prometheus/counter.h"
#include "server/metrics/metric_families.h"
#include "server/metrics/metric_labels.h"
#include "server/metrics/model_metrics.h"
#include "server/metrics/series.h"

namespace attendant {

// requests_total of one model; its name is empty for requests that name a model that does not
// exist. Thread-safe.
class RequestCounters {
 public:
  RequestCounters(MetricFamilies& families, std::string model);

  // Makes the series of all codes.
  void MakeAll(Method method);
  // Codes outside gRPC's range, which only a broken caller has, count as UNKNOWN.
  void Count(Method method, absl::StatusCode code);

  // Adds to `requests` and `failed`.
  void AddTo(ModelSample& sample) const;

 private:
  static constexpr size_t kNumCodes = 17;  // gRPC's, 0 to 16

  prometheus::Counter& Find(Method method, size_t code);

  SeriesSet series_;
  prometheus::Family<prometheus::Counter>& family_;
  const std::string model_;
  std::array<std::array<LazySeries<prometheus::Counter>, kNumCodes>, kMethods.size()> counters_;
};

}  // namespace attendant
