// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/embedding_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace attendant::cpu {
namespace {

const std::vector<float> kValues = {1.0f, -2.5f, 1.00390625f, 1.01171875f, 3.14159f, -1e-30f};

EmbeddingTable Fill(DType dtype, Arena& arena) {
  EmbeddingTable table(3, 2, dtype, arena);
  const TensorView<const float, 2> values(kValues.data(), {3, 2});
  table.FillRows(values, 1, 3);
  table.FillRows(values, 0, 1);
  return table;
}

TEST(EmbeddingTableTest, F32IsTheTableItself) {
  Arena arena(1024);
  const EmbeddingTable table = Fill(DType::kF32, arena);
  for (int64_t row = 0; row < 3; ++row) {
    const float* values = table.Row(row, nullptr);
    EXPECT_EQ(values[0], kValues[static_cast<size_t>(2 * row)]);
    EXPECT_EQ(values[1], kValues[static_cast<size_t>(2 * row + 1)]);
  }
  EXPECT_EQ(table.bytes(), 24);
}

// 8 bits of mantissa: 1.00390625 lies between two and goes to the even one, 1; 1.01171875 to
// 1.015625.
TEST(EmbeddingTableTest, Bf16IsRoundedToNearestEven) {
  Arena arena(1024);
  const EmbeddingTable table = Fill(DType::kBf16, arena);
  float scratch[2];
  EXPECT_EQ(table.Row(0, scratch)[0], 1.0f);
  EXPECT_EQ(scratch[1], -2.5f);
  EXPECT_EQ(table.Row(1, scratch)[0], 1.0f);
  EXPECT_EQ(scratch[1], 1.015625f);
  EXPECT_EQ(table.Row(2, scratch)[0], 3.140625f);
  EXPECT_NEAR(scratch[1], -1e-30f, 1e-32f);
  EXPECT_EQ(table.bytes(), 12);
}

TEST(EmbeddingTableTest, Int8HasAScaleForEachRow) {
  Arena arena(1024);
  const EmbeddingTable table = Fill(DType::kInt8, arena);
  float scratch[2];
  EXPECT_FLOAT_EQ(table.Row(0, scratch)[0], 51 * 2.5f / 127) << "1.0 of 2.5 is 50.8 of 127";
  EXPECT_FLOAT_EQ(scratch[1], -2.5f) << "the largest of a row is exact";
  EXPECT_FLOAT_EQ(table.Row(1, scratch)[0], 126 * 1.01171875f / 127);
  EXPECT_FLOAT_EQ(table.Row(2, scratch)[0], 3.14159f);
  EXPECT_EQ(scratch[1], 0.0f);
  EXPECT_EQ(table.bytes(), 6 + 12);
}

// Of the second row 127 / largest would be infinite, of the third largest / 127 is zero.
TEST(EmbeddingTableTest, ARowOfNothingIsZerosInInt8) {
  Arena arena(1024);
  EmbeddingTable table(4, 2, DType::kInt8, arena);
  const float values[] = {0.0f, -0.0f, 0.0f, 3e-37f, 1e-44f, -1e-44f, 3e-36f, -3e-36f};
  table.FillRows({values, {4, 2}}, 0, 4);
  for (int64_t row = 0; row < 3; ++row) {
    float scratch[2] = {1, 1};
    EXPECT_EQ(table.Row(row, scratch)[0], 0.0f) << row;
    EXPECT_EQ(scratch[1], 0.0f) << row;
  }
  float scratch[2];
  EXPECT_FLOAT_EQ(table.Row(3, scratch)[0], 3e-36f);
  EXPECT_FLOAT_EQ(scratch[1], -3e-36f);
}

}  // namespace
}  // namespace attendant::cpu
