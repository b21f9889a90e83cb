// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/request_counters.h"

#include <utility>

namespace attendant {

RequestCounters::RequestCounters(MetricFamilies& families, std::string model)
    : family_(families.requests_total), model_(std::move(model)) {}

void RequestCounters::MakeAll(Method method) {
  for (size_t code = 0; code < kNumCodes; ++code) Find(method, code);
}

void RequestCounters::Count(Method method, absl::StatusCode code) {
  const auto number = static_cast<size_t>(code);
  Find(method, number < kNumCodes ? number : static_cast<size_t>(absl::StatusCode::kUnknown))
      .Increment();
}

void RequestCounters::AddTo(ModelSample& sample) const {
  for (const auto& codes : counters_) {
    for (size_t code = 0; code < kNumCodes; ++code) {
      const prometheus::Counter* counter = codes[code].Find();
      if (counter != nullptr) (code == 0 ? sample.requests : sample.failed) += counter->Value();
    }
  }
}

prometheus::Counter& RequestCounters::Find(Method method, size_t code) {
  return counters_[RowIndex(method)][code].Get([&]() -> prometheus::Counter& {
    return series_.Add(family_,
                       {{"model", model_},
                        {"method", kMethods[RowIndex(method)].name},
                        {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}});
  });
}

}  // namespace attendant
