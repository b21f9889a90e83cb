// SPDX-License-Identifier: Apache-2.0
#include "client/load/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "client/load/random.h"

namespace attendant::client {
namespace {

TEST(HistogramTest, IsEmptyAtFirst) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.Percentile(50), 0);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.max(), 0);
}

TEST(HistogramTest, SmallValuesAreExact) {
  Histogram histogram;
  for (int64_t value = 0; value < 2048; ++value) histogram.Record(value);
  EXPECT_EQ(histogram.Percentile(0), 0);
  EXPECT_EQ(histogram.Percentile(50), 1023);
  EXPECT_EQ(histogram.Percentile(100), 2047);
  EXPECT_DOUBLE_EQ(histogram.mean(), 1023.5);
}

// One value alone comes back exactly, so each is recorded between its neighbours.
TEST(HistogramTest, EveryMagnitudeIsPrecise) {
  Random random(1);
  for (int bits = 11; bits < 48; ++bits) {
    for (int i = 0; i < 50; ++i) {
      const int64_t low = int64_t{1} << (bits - 1);
      const int64_t value = random.Integer(low, 2 * low - 1);
      Histogram histogram;
      histogram.Record(0);
      histogram.Record(value);
      histogram.Record(Histogram::kMaxValue);
      const double error = std::abs(static_cast<double>(histogram.Percentile(50) - value));
      ASSERT_LE(error, 0.0005 * static_cast<double>(value)) << value;
    }
  }
}

TEST(HistogramTest, PercentilesAgreeWithSorting) {
  Random random(2);
  Histogram histogram;
  std::vector<int64_t> values(20001);
  for (int64_t& value : values) {
    value = static_cast<int64_t>(1e6 * std::exp(1.5 * random.Normal()));
    histogram.Record(value);
  }
  std::sort(values.begin(), values.end());
  for (double percent : {1.0, 25.0, 50.0, 90.0, 99.0, 99.9}) {
    const double rank = std::ceil(percent / 100 * static_cast<double>(values.size()));
    const double exact = static_cast<double>(values[static_cast<size_t>(rank) - 1]);
    EXPECT_NEAR(static_cast<double>(histogram.Percentile(percent)), exact, 0.0005 * exact + 1);
  }
  EXPECT_EQ(histogram.Percentile(100), values.back());
  EXPECT_EQ(histogram.max(), values.back());
}

TEST(HistogramTest, APercentileOfARoundCountIsNotTheNextValue) {
  Histogram histogram;
  for (int64_t value = 1; value <= 2000; ++value) {
    histogram.Record(value);
    if (value % 1000 != 0) continue;
    EXPECT_EQ(histogram.Percentile(99.9), value - value / 1000);
  }
  EXPECT_EQ(histogram.Percentile(99.95), 1999);
}

TEST(HistogramTest, TwoAddUpToOneWithAllValues) {
  Random random(3);
  Histogram both, first, second;
  for (int i = 0; i < 1000; ++i) {
    const auto value = static_cast<int64_t>(1e5 * std::exp(2 * random.Normal()));
    both.Record(value);
    (i % 3 == 0 ? first : second).Record(value);
  }
  first.Add(second);
  first.Add(Histogram());
  EXPECT_TRUE(std::ranges::equal(first.buckets(), both.buckets()));
  EXPECT_EQ(first.count(), both.count());
  EXPECT_EQ(first.min(), both.min());
  EXPECT_EQ(first.max(), both.max());
  EXPECT_NEAR(first.mean(), both.mean(), 1e-9 * both.mean());
}

// HdrHistogram's order: value 2048 is the first whose bucket holds two values.
TEST(HistogramTest, BucketsJoinWithoutAGap) {
  EXPECT_EQ(Histogram::LowestOf(0), 0);
  EXPECT_EQ(Histogram::LowestOf(2047), 2047);
  EXPECT_EQ(Histogram::LowestOf(2048), 2048);
  EXPECT_EQ(Histogram::LowestOf(2049), 2050);
  EXPECT_EQ(Histogram::LowestOf(3072), 4096);
  for (int64_t value : {5, 2047, 2048, 2049, 5000, 1 << 20, (1 << 20) + 1023}) {
    Histogram histogram;
    histogram.Record(value);
    const size_t bucket = histogram.buckets().size() - 1;
    EXPECT_LE(Histogram::LowestOf(bucket), value);
    EXPECT_GT(Histogram::LowestOf(bucket + 1), value);
  }
}

TEST(HistogramTest, HoldsWhatIsTooLarge) {
  Histogram histogram;
  histogram.Record(INT64_MAX);
  EXPECT_EQ(histogram.max(), Histogram::kMaxValue);
  EXPECT_EQ(histogram.Percentile(50), Histogram::kMaxValue);
}

}  // namespace
}  // namespace attendant::client
