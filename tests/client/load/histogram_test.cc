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
  for (int64_t value = 0; value < 256; ++value) histogram.Record(value);
  EXPECT_EQ(histogram.Percentile(0), 0);
  EXPECT_EQ(histogram.Percentile(50), 127);
  EXPECT_EQ(histogram.Percentile(100), 255);
  EXPECT_DOUBLE_EQ(histogram.mean(), 127.5);
}

// One value alone comes back exactly, so each is recorded between its neighbours.
TEST(HistogramTest, EveryMagnitudeIsPrecise) {
  Random random(1);
  for (int bits = 8; bits < 48; ++bits) {
    for (int i = 0; i < 200; ++i) {
      const int64_t low = int64_t{1} << (bits - 1);
      const int64_t value = random.Integer(low, 2 * low - 1);
      Histogram histogram;
      histogram.Record(0);
      histogram.Record(value);
      histogram.Record(Histogram::kMaxValue);
      const double error = std::abs(static_cast<double>(histogram.Percentile(50) - value));
      ASSERT_LE(error, 0.004 * static_cast<double>(value)) << value;
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
    EXPECT_NEAR(static_cast<double>(histogram.Percentile(percent)), exact, 0.004 * exact);
  }
  EXPECT_EQ(histogram.Percentile(100), values.back());
  EXPECT_EQ(histogram.max(), values.back());
}

TEST(HistogramTest, HoldsWhatIsTooLarge) {
  Histogram histogram;
  histogram.Record(INT64_MAX);
  EXPECT_EQ(histogram.max(), Histogram::kMaxValue);
  EXPECT_EQ(histogram.Percentile(50), Histogram::kMaxValue);
}

}  // namespace
}  // namespace attendant::client
