// SPDX-License-Identifier: Apache-2.0
#include "client/load/interval_series.h"

#include <utility>

namespace attendant::client {

Interval& IntervalSeries::At(absl::Duration time) {
  absl::Duration rest;
  while (absl::IDivDuration(time, length_, &rest) >= static_cast<int64_t>(kMaxIntervals)) {
    MergeNeighbours();
  }
  const auto index = static_cast<size_t>(absl::IDivDuration(time, length_, &rest));
  if (index >= intervals_.size()) intervals_.resize(index + 1);
  return intervals_[index];
}

void IntervalSeries::MergeNeighbours() {
  std::vector<Interval> merged;
  for (size_t i = 0; i < intervals_.size(); i += 2) {
    Interval& sum = merged.emplace_back(std::move(intervals_[i]));
    if (i + 1 == intervals_.size()) break;
    const Interval& next = intervals_[i + 1];
    sum.response_ns.Add(next.response_ns);
    sum.offered += next.offered;
    sum.failed += next.failed;
    sum.finished += next.finished;
  }
  intervals_ = std::move(merged);
  length_ *= 2;
}

}  // namespace attendant::client
