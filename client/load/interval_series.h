// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "client/load/histogram.h"

namespace attendant::client {

// The results of one stretch of a load.
struct Interval {
  Histogram response_ns;  // of the requests intended in it that went well
  int64_t offered = 0;    // requests intended in it
  int64_t failed = 0;     // of these, those that ended with an error or were not sent
  int64_t finished = 0;   // answers without an error that came in it
};

// A load in stretches of equal length: one second at first. When there would be more than
// kMaxIntervals, neighbours become one, and the length doubles. Thread-compatible.
class IntervalSeries {
 public:
  static constexpr size_t kMaxIntervals = 240;

  IntervalSeries() = default;
  explicit IntervalSeries(absl::Duration length) : length_(length) {}

  // The interval that holds `time`, counted from the start of the series. REQUIRES: time >= 0.
  Interval& At(absl::Duration time);

  absl::Duration length() const { return length_; }
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  void MergeNeighbours();

  absl::Duration length_ = absl::Seconds(1);
  std::vector<Interval> intervals_;
};

}  // namespace attendant::client
