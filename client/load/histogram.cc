// SPDX-License-Identifier: Apache-2.0
#include "client/load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace attendant::client {
namespace {

constexpr int kSubBits = 7;  // 128 buckets to each power of two
constexpr int64_t kSubBuckets = int64_t{1} << kSubBits;

// A value v in [2^(7 + shift), 2^(8 + shift)) keeps its top 8 bits; bucket = shift * 128 + those
// bits. With shift 0 that is v itself, so the buckets join without a gap.
size_t BucketOf(int64_t value) {
  const int bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(value)));
  const int shift = std::max(0, bits - kSubBits - 1);
  return static_cast<size_t>(shift * kSubBuckets + (value >> shift));
}

int64_t MiddleOf(size_t bucket) {
  const int64_t index = static_cast<int64_t>(bucket);
  if (index < 2 * kSubBuckets) return index;
  const int64_t shift = index / kSubBuckets - 1;
  const int64_t low = (index - shift * kSubBuckets) << shift;
  return low + (int64_t{1} << shift) / 2;
}

}  // namespace

Histogram::Histogram() : buckets_(BucketOf(kMaxValue) + 1) {}

void Histogram::Record(int64_t value) {
  value = std::min(value, kMaxValue);
  ++buckets_[BucketOf(value)];
  ++count_;
  sum_ += static_cast<double>(value);
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

double Histogram::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

int64_t Histogram::Percentile(double percent) const {
  if (count_ == 0) return 0;
  const double exact_rank = std::ceil(percent / 100 * static_cast<double>(count_));
  const int64_t rank = std::clamp(static_cast<int64_t>(exact_rank), int64_t{1}, count_);
  int64_t seen = 0;
  size_t bucket = 0;
  while ((seen += buckets_[bucket]) < rank) ++bucket;
  return std::clamp(MiddleOf(bucket), min_, max_);
}

}  // namespace attendant::client
