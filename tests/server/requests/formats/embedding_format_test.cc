// SPDX-License-Identifier: Apache-2.0
#include "server/requests/formats/embedding_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace attendant {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(EmbeddingFormatTest, Int8HasTheLargestMagnitudeAt127) {
  const Int8Embedding embedding = QuantizeInt8(std::vector<float>{0.5f, -1, 0.25f, 0, 1});
  EXPECT_THAT(embedding.values, ElementsAre(64, -127, 32, 0, 127));  // 63.5 to even, 31.75
  EXPECT_FLOAT_EQ(embedding.scale, 1.0f / 127);
}

TEST(EmbeddingFormatTest, Int8IsWithinHalfAStep) {
  std::vector<float> values;
  for (int i = 0; i < 999; ++i) values.push_back(static_cast<float>((i * 7919) % 2003 - 1001));
  const Int8Embedding embedding = QuantizeInt8(values);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(static_cast<float>(embedding.values[i]) * embedding.scale, values[i],
                embedding.scale * 0.501f);
  }
}

TEST(EmbeddingFormatTest, VectorsWithoutAScaleGiveZeros) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& values :
       {std::vector<float>{0, -0.0f}, {1, kInfinity}, {kNan, 1}}) {
    const Int8Embedding embedding = QuantizeInt8(values);
    EXPECT_EQ(embedding.values.size(), 2);
    EXPECT_THAT(embedding.values, Each(0));
    EXPECT_EQ(embedding.scale, 0);
  }
  EXPECT_THAT(QuantizeInt8({}).values, IsEmpty());
}

TEST(EmbeddingFormatTest, SmallNumbersKeepTheirRatio) {
  const float tiny = std::numeric_limits<float>::denorm_min() * 200;
  EXPECT_THAT(QuantizeInt8(std::vector<float>{tiny, -tiny}).values, ElementsAre(127, -127));
}

TEST(EmbeddingFormatTest, SignsArePackedFromTheHighestBit) {
  EXPECT_THAT(PackSigns(std::vector<float>{1, 0, -1, 2, 3, -4, 5, 0.5f}), ElementsAre(0b10011011));
  EXPECT_THAT(PackSigns(std::vector<float>{-1, -1, -1, -1, -1, -1, -1, -1, 1, -1, 1}),
              ElementsAre(0, 0b10100000));
  EXPECT_THAT(PackSigns({}), IsEmpty());
}

TEST(EmbeddingFormatTest, BytesOfAnEmbedding) {
  EXPECT_EQ(EmbeddingBytes(EmbeddingFormat::kInt8, 11), 11);
  EXPECT_EQ(EmbeddingBytes(EmbeddingFormat::kBinary, 11), 2);
  EXPECT_EQ(EmbeddingBytes(EmbeddingFormat::kUbinary, 16), 2);
}

}  // namespace
}  // namespace attendant
