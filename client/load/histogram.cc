// SPDX-License-Identifier: Apache-2.0
#include "client/load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace attendant::client {
namespace {

constexpr int kSubBits = 10;  // 1024 buckets to each power of two
constexpr int64_t kSubBuckets = int64_t{1} << kSubBits;
// Of a rank: 99.9 % of 1000 is 999.0000000000001 in binary.
constexpr double kRounding = 1e-6;

// A value v in [2^(10 + shift), 2^(11 + shift)) keeps its top 11 bits; bucket = shift * 1024 +
// those bits. With shift 0 that is v itself, so the buckets join without a gap.
size_t BucketOf(int64_t value) {
  const int bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(value)));
  const int shift = std::max(0, bits - kSubBits - 1);
  return static_cast<size_t>(shift * kSubBuckets + (value >> shift));
}

int64_t ShiftOf(size_t bucket) {
  return std::max<int64_t>(0, static_cast<int64_t>(bucket) / kSubBuckets - 1);
}

int64_t MiddleOf(size_t bucket) {
  const int64_t low = Histogram::LowestOf(bucket);
  const int64_t shift = ShiftOf(bucket);
  return low + (int64_t{1} << shift) / 2;
}

}  // namespace

int64_t Histogram::LowestOf(size_t bucket) {
  const int64_t shift = ShiftOf(bucket);
  return (static_cast<int64_t>(bucket) - shift * kSubBuckets) << shift;
}

void Histogram::Record(int64_t value) {
  value = std::min(value, kMaxValue);
  const size_t bucket = BucketOf(value);
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  ++buckets_[bucket];
  ++count_;
  sum_ += static_cast<double>(value);
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

void Histogram::Add(const Histogram& other) {
  buckets_.resize(std::max(buckets_.size(), other.buckets_.size()));
  for (size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

double Histogram::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

int64_t Histogram::Percentile(double percent) const {
  if (count_ == 0) return 0;
  const double exact_rank = std::ceil(percent / 100 * static_cast<double>(count_) - kRounding);
  const int64_t rank = std::clamp(static_cast<int64_t>(exact_rank), int64_t{1}, count_);
  if (rank == count_) return max_;
  int64_t seen = 0;
  size_t bucket = 0;
  while ((seen += buckets_[bucket]) < rank) ++bucket;
  return std::clamp(MiddleOf(bucket), min_, max_);
}

}  // namespace attendant::client
