// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attendant::client {

// Counts values in buckets as HdrHistogram does with three significant digits: 1024 buckets for
// each power of two, so that a percentile is off by less than 0.05 %. Values below 2048 are exact;
// those above kMaxValue count as kMaxValue. Takes 8 KiB for each power of two up to the largest
// value: 130 KiB when that is 20 ms in nanoseconds.
class Histogram {
 public:
  // As nanoseconds: 78 hours.
  static constexpr int64_t kMaxValue = (int64_t{1} << 48) - 1;
  static constexpr int kSignificantDigits = 3;

  // REQUIRES: value >= 0.
  void Record(int64_t value);
  void Add(const Histogram& other);

  int64_t count() const { return count_; }
  int64_t min() const { return count_ == 0 ? 0 : min_; }  // exact
  int64_t max() const { return max_; }                    // exact
  double mean() const;                                    // exact; 0 when empty

  // The smallest recorded value that at least `percent` of all values do not exceed; 0 when empty.
  // REQUIRES: 0 <= percent <= 100.
  int64_t Percentile(double percent) const;

  // Values in each bucket, up to the last bucket that is not empty, in HdrHistogram's order.
  std::span<const int64_t> buckets() const { return buckets_; }
  // The smallest value that belongs to a bucket.
  static int64_t LowestOf(size_t bucket);

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  int64_t min_ = kMaxValue;
  int64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace attendant::client
