// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/positions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/attention/values.h"
#include "kernels/core/base/distances.h"
#include "kernels/io/float_values.h"
#include "kernels/io/safetensors.h"
#include "tests/kernels/attention/call_support.h"

namespace attendant::attention {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PositionsTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<SafetensorsFile> file =
        SafetensorsFile::Open("tests/golden/attention/family.safetensors");
    ASSERT_TRUE(file.ok()) << file.status();
    file_.emplace(*std::move(file));
  }

  std::vector<float> Floats(const std::string& name) const {
    const StoredTensor* tensor = file_->Find(name);
    EXPECT_NE(tensor, nullptr) << name;
    if (tensor == nullptr) return {};
    std::vector<float> values(tensor->data.size() / sizeof(float));
    EXPECT_TRUE(ConvertToFloat(tensor->dtype, tensor->data, values).ok());
    return values;
  }

  std::vector<int32_t> Integers(const std::string& name) const {
    const StoredTensor* tensor = file_->Find(name);
    EXPECT_NE(tensor, nullptr) << name;
    if (tensor == nullptr) return {};
    const auto* values = reinterpret_cast<const int32_t*>(tensor->data.data());
    return {values, values + tensor->data.size() / sizeof(int32_t)};
  }

  // Rotates the case's x [tokens, 3, 16] and expects what transformers gave.
  void ExpectRotated(const std::string& name, const RotaryOptions& options) {
    SCOPED_TRACE(name);
    const std::vector<float> expected = Floats(name + "/out");
    const std::vector<int32_t> positions = Integers(name + "/positions");
    const int64_t starts[] = {0, static_cast<int64_t>(positions.size())};
    ASSERT_EQ(expected.size(), positions.size() * 3 * 16);
    for (DType dtype : {DType::kF32, DType::kBf16}) {
      std::vector<std::byte> x = Encode(Floats(name + "/x"), dtype);
      const absl::Status status = Rotate(options,
                                         {.sequences = Sequences::Packed(starts),
                                          .dtype = dtype,
                                          .rows = OutputRows::TokensFirst(x.data(), 3, 16),
                                          .positions = positions},
                                         pool_);
      ASSERT_TRUE(status.ok()) << status;
      std::vector<float> turned;
      for (size_t i = 0; i < expected.size(); ++i) {
        turned.push_back(ReadValue(x.data(), dtype, static_cast<int64_t>(i)));
      }
      EXPECT_LE(LargestDifference(turned, expected), dtype == DType::kF32 ? 1e-5 : 1e-2);
    }
  }

  std::optional<SafetensorsFile> file_;
  ThreadPool pool_{2};
};

TEST_F(PositionsTest, SinusoidalMatchesTheFormula) {
  for (int64_t dim : {1, 7, 24}) {
    std::vector<float> table(static_cast<size_t>(50 * dim));
    FillSinusoidal(50, dim, kDefaultBase, table.data());
    EXPECT_LE(LargestDifference(table, Floats(absl::StrCat("sinusoidal_", dim, "/table"))), 1e-7);
  }
}

TEST_F(PositionsTest, SinusoidalIsAsExactFarAwayAsNearby) {
  constexpr int64_t kPositions = 20000, kDims = 6;
  std::vector<float> table(static_cast<size_t>(kPositions * kDims));
  FillSinusoidal(kPositions, kDims, 2, table.data());
  double largest = 0;
  for (int64_t p = 0; p < kPositions; ++p) {
    for (int64_t column = 0; column < kDims; ++column) {
      const double angle =
          static_cast<double>(p) *
          std::pow(2, -static_cast<double>(column / 2 * 2) / static_cast<double>(kDims));
      const double exact = column % 2 == 0 ? std::sin(angle) : std::cos(angle);
      const double value = table[static_cast<size_t>(p * kDims + column)];
      largest = std::max(largest, std::abs(value - exact));
    }
  }
  EXPECT_LE(largest, 3.1e-8) << "half a unit in the last place of f32";
}

TEST_F(PositionsTest, RotaryMatchesTransformers) {
  ExpectRotated("rotary_half_10000", {});
  ExpectRotated("rotary_half_500000", {.base = 500000});
  ExpectRotated("rotary_interleaved_16", {.interleaved = true});
  ExpectRotated("rotary_interleaved_8", {.dims = 8, .interleaved = true});
  ExpectRotated("rotary_interleaved_far", {.interleaved = true});
}

TEST_F(PositionsTest, RotaryDependsOnDistanceAlone) {
  const std::vector<float> x = Floats("rotary_half_10000/x");
  const auto dot_at = [&](int32_t query, int32_t key) {
    std::vector<float> pair(x.begin(), x.begin() + 32);
    const int32_t positions[] = {query, key};
    const int64_t starts[] = {0, 2};
    EXPECT_TRUE(
        Rotate({},
               {.sequences = Sequences::Packed(starts),
                .rows = OutputRows::TokensFirst(reinterpret_cast<std::byte*>(pair.data()), 1, 16),
                .positions = positions},
               pool_)
            .ok());
    double dot = 0;
    for (size_t i = 0; i < 16; ++i) dot += static_cast<double>(pair[i] * pair[16 + i]);
    return dot;
  };
  EXPECT_NEAR(dot_at(3, 10), dot_at(1003, 1010), 1e-5);
  EXPECT_GT(std::abs(dot_at(3, 10) - dot_at(3, 11)), 1e-2);
}

// One token at position 5, whose dims behind the first `dims` stay as they are.
TEST_F(PositionsTest, RotaryTurnsThePairsOfTheFirstDims) {
  constexpr size_t kDim = 8;
  const int32_t position[] = {5};
  for (const bool interleaved : {false, true}) {
    for (const size_t dims : {size_t{2}, size_t{4}, size_t{6}, kDim}) {
      std::vector<float> x, expected;
      for (size_t d = 0; d < kDim; ++d) x.push_back(1 + static_cast<float>(d * d));
      expected = x;
      for (size_t pair = 0; pair < dims / 2; ++pair) {
        const size_t a = interleaved ? 2 * pair : pair;
        const size_t b = interleaved ? 2 * pair + 1 : pair + dims / 2;
        const double angle =
            5 * std::pow(100, -2 * static_cast<double>(pair) / static_cast<double>(dims));
        expected[a] = static_cast<float>(x[a] * std::cos(angle) - x[b] * std::sin(angle));
        expected[b] = static_cast<float>(x[b] * std::cos(angle) + x[a] * std::sin(angle));
      }
      ASSERT_TRUE(
          Rotate({.base = 100, .dims = static_cast<int64_t>(dims), .interleaved = interleaved},
                 {.sequences = Sequences::Dense(1, 1),
                  .rows = OutputRows::TokensFirst(reinterpret_cast<std::byte*>(x.data()), 1, kDim),
                  .positions = position},
                 pool_)
              .ok());
      EXPECT_THAT(x, ::testing::Pointwise(::testing::FloatNear(1e-4f), expected))
          << dims << " dims, interleaved: " << interleaved;
    }
  }
}

TEST_F(PositionsTest, AddsTheRowOfEachPosition) {
  // Two dense sequences of 3 tokens, 2 heads of 2 dims.
  const std::vector<float> table = {1, 2, 10, 20, 100, 200, 1000, 2000};
  std::vector<float> x(2 * 3 * 2 * 2, 0.5f);
  PositionedRows operand{
      .sequences = Sequences::Dense(2, 3),
      .rows = OutputRows::HeadsFirst(reinterpret_cast<std::byte*>(x.data()), 2, 2, 3)};
  ASSERT_TRUE(AddPositions({table.data(), {4, 2}}, operand, pool_).ok());
  const std::vector<float> head = {1.5f, 2.5f, 10.5f, 20.5f, 100.5f, 200.5f};
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i], head[i % 6]) << i;

  const int32_t positions[] = {3, 3, 0, 1, 2, 3};
  operand.positions = positions;
  std::fill(x.begin(), x.end(), 0.0f);
  ASSERT_TRUE(AddPositions({table.data(), {4, 2}}, operand, pool_).ok());
  EXPECT_THAT(x, ElementsAre(1000, 2000, 1000, 2000, 1, 2, 1000, 2000, 1000, 2000, 1, 2,  //
                             10, 20, 100, 200, 1000, 2000, 10, 20, 100, 200, 1000, 2000));
}

TEST_F(PositionsTest, RefusesWhatDoesNotFit) {
  std::vector<float> x(3 * 4, 0), table(2 * 4, 0);
  PositionedRows operand{
      .sequences = Sequences::Dense(1, 3),
      .rows = OutputRows::HeadsFirst(reinterpret_cast<std::byte*>(x.data()), 1, 4, 3)};
  const auto expect = [](const absl::Status& status, const char* words) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr(words));
  };
  expect(AddPositions({table.data(), {2, 4}}, operand, pool_),
         "longest sequence has 3 tokens, the table has 2 positions");
  expect(AddPositions({table.data(), {4, 2}}, operand, pool_), "the table has 2 dims, a row has 4");
  const int32_t wrong[] = {0, 2, 1}, negative[] = {0, -1, 1}, few[] = {0, 1};
  operand.positions = wrong;
  expect(AddPositions({table.data(), {2, 4}}, operand, pool_), "token 1 is 2, the table has 2");
  operand.positions = negative;
  expect(AddPositions({table.data(), {2, 4}}, operand, pool_), "token 1 is -1");
  operand.positions = few;
  expect(Rotate({}, operand, pool_), "2 positions for 3 tokens");
  operand.positions = {};
  expect(Rotate({.dims = 3}, operand, pool_), "3 of 4 dims");
  expect(Rotate({.dims = 6}, operand, pool_), "6 of 4 dims");
  expect(Rotate({.base = -1}, operand, pool_), "base is -1");
}

TEST_F(PositionsTest, AlibiMatchesTransformers) {
  for (int64_t heads : {1, 2, 8, 12, 16, 20}) {
    const std::vector<float> slopes = AlibiSlopes(heads);
    EXPECT_LE(LargestDifference(slopes, Floats(absl::StrCat("alibi_", heads, "/slopes"))), 1e-7);
    // As a part of the mask it is the same as the tensor that it stands for.
    const std::vector<float> bias = Floats(absl::StrCat("alibi_", heads, "/bias"));
    TestCall test(Kind::kLuongDot, DType::kF32,
                  {.batch = 2, .heads = heads, .queries = 9, .keys = 9}, 3);
    test.call.mask.tensor = {MaskTensor::Type::kF32, bias.data(), {1, heads, 9, 9}};
    const absl::StatusOr<Answer> by_tensor = RunCall(test.call);
    test.call.mask.tensor = {};
    const absl::StatusOr<Answer> without = RunCall(test.call);
    test.call.mask.alibi_slopes = slopes;
    const absl::StatusOr<Answer> by_slopes = RunCall(test.call);
    ASSERT_TRUE(by_tensor.ok() && by_slopes.ok() && without.ok());
    EXPECT_LE(LargestDifference(by_tensor->out, by_slopes->out), 1e-6);
    EXPECT_GT(LargestDifference(by_tensor->out, without->out), 1e-3);
  }
}

}  // namespace
}  // namespace attendant::attention
