// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace attendant::client {

// Counts values in buckets, 128 for each power of two: a percentile is off by less than 0.4 %.
// Values below 256 are exact; those above kMaxValue count as kMaxValue. Takes 36 KiB.
class Histogram {
 public:
  // As nanoseconds: 78 hours.
  static constexpr int64_t kMaxValue = (int64_t{1} << 48) - 1;

  Histogram();

  // REQUIRES: value >= 0.
  void Record(int64_t value);

  int64_t count() const { return count_; }
  int64_t max() const { return max_; }  // exact
  double mean() const;                  // exact; 0 when empty

  // The smallest recorded value that at least `percent` of all values do not exceed; 0 when empty.
  // REQUIRES: 0 <= percent <= 100.
  int64_t Percentile(double percent) const;

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  int64_t min_ = kMaxValue;
  int64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace attendant::client
