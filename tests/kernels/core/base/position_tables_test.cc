// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/position_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(RotaryTableTest, HasCosinesAndThenSinesOfEveryPosition) {
  const RotaryTable table({.base = 100, .frequency_scale = 0.5}, 3, 4);
  const float rates[] = {0.5f, 0.05f};
  for (int64_t position = 0; position < 3; ++position) {
    for (int64_t i = 0; i < 2; ++i) {
      const double angle = static_cast<double>(static_cast<float>(position) * rates[i]);
      EXPECT_FLOAT_EQ(table.cosines(position)[i], static_cast<float>(std::cos(angle)));
      EXPECT_FLOAT_EQ(table.sines(position)[i], static_cast<float>(std::sin(angle)));
      EXPECT_EQ(table.data()[position * 4 + i], table.cosines(position)[i]);
      EXPECT_EQ(table.data()[position * 4 + 2 + i], table.sines(position)[i]);
    }
  }
  EXPECT_EQ(table.bytes(), 3 * 4 * 4);
  EXPECT_EQ(RotaryTable().data(), nullptr);
}

// Of transformers' LlamaRotaryEmbedding. The plain ones round otherwise in f64.
TEST(RotaryTest, RatesAreThoseOfPyTorch) {
  const Rotary plain{.base = 10000};
  EXPECT_EQ(plain.Rate(2, 80), 0.630957305431366f);
  EXPECT_EQ(plain.Rate(9, 80), 0.1258925497531891f);
  Rotary llama{.base = 500000};
  llama.long_waves.factor = 32;
  EXPECT_FLOAT_EQ(llama.Rate(0, 64), 1.0f);
  EXPECT_FLOAT_EQ(llama.Rate(10, 64), 0.016560440883040428f);
  EXPECT_FLOAT_EQ(llama.Rate(15, 64), 0.0012905480107292533f);
  EXPECT_FLOAT_EQ(llama.Rate(16, 64), 0.000429556705057621f);
  EXPECT_FLOAT_EQ(llama.Rate(17, 64), 9.708286233944818e-05f);
  EXPECT_FLOAT_EQ(llama.Rate(18, 64), 1.9461638657958247e-05f);
  EXPECT_FLOAT_EQ(llama.Rate(31, 64), 9.418306490260875e-08f);
}

TEST(RotaryTest, StoredRatesCount) {
  const Rotary rotary{.base = 100, .rates = {1, 0.09f}};
  EXPECT_EQ(rotary.Rate(1, 4), 0.09f);
  EXPECT_FLOAT_EQ(RotaryTable(rotary, 3, 4).sines(2)[1], std::sin(0.18f));
}

EncoderConfig ConfigOf(ScoreBias bias) {
  EncoderConfig config;
  config.heads = 2;
  config.max_positions = 3;
  config.score_bias = bias;
  config.bias_buckets = 4;
  config.bias_max_distance = 8;
  return config;
}

TEST(ScoresByDistanceTest, AlibiFallsWithTheDistance) {
  EXPECT_THAT(ScoresByDistance(ConfigOf(ScoreBias::kAlibi), {}),
              ElementsAre(-0.125f, -0.0625f, 0.0f, -0.0625f, -0.125f,  // 2^-4
                          -0.0078125f, -0.00390625f, 0.0f, -0.00390625f, -0.0078125f));
}

TEST(ScoresByDistanceTest, BucketsAreLookedUp) {
  const float weights[] = {1, 10, 2, 20, 3, 30, 4, 40};  // [4, 2]
  const std::vector<float> scores =
      ScoresByDistance(ConfigOf(ScoreBias::kBuckets), {weights, {4, 2}});
  // Buckets of keys before the query are 0 and 1, behind it 2 and 3.
  EXPECT_THAT(scores, ElementsAre(2, 2, 1, 4, 4, 20, 20, 10, 40, 40));
}

TEST(ScoresByDistanceTest, OthersHaveNone) {
  EXPECT_THAT(ScoresByDistance(ConfigOf(ScoreBias::kNone), {}), IsEmpty());
  EXPECT_THAT(ScoresByDistance(ConfigOf(ScoreBias::kDisentangled), {}), IsEmpty());
}

}  // namespace
}  // namespace attendant
