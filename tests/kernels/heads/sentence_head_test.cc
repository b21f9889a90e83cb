// SPDX-License-Identifier: Apache-2.0
#include "kernels/heads/sentence_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

SentenceHead::Dense Widen(HeadActivation activation) {  // from 2 to 3 values
  return {.linear = {.outputs = 3, .inputs = 2, .weight = {1, 2, 3, 4, 5, 6}, .bias = {0, 0.5f, 1}},
          .activation = activation};
}

TEST(SentenceHeadTest, WithoutModulesItGivesItsInput) {
  const SentenceHead head;
  EXPECT_TRUE(head.empty());
  EXPECT_EQ(head.InputWidth(), 0);
  EXPECT_EQ(head.OutputWidth(7), 7);
  EXPECT_THAT(head.Compute({1, 2}), ElementsAre(1, 2));
}

TEST(SentenceHeadTest, DenseAppliesItsActivation) {
  const SentenceHead identity{.modules = {Widen(HeadActivation::kNone)}};
  EXPECT_EQ(identity.InputWidth(), 2);
  EXPECT_EQ(identity.OutputWidth(2), 3);
  EXPECT_THAT(identity.Compute({1, -1}), ElementsAre(-1, -0.5f, 0));
  const SentenceHead tanh{.modules = {Widen(HeadActivation::kTanh)}};
  EXPECT_THAT(tanh.Compute({1, -1}),
              Pointwise(FloatNear(1e-6f), {std::tanh(-1.0f), std::tanh(-0.5f), 0.0f}));
  const SentenceHead sigmoid{.modules = {Widen(HeadActivation::kSigmoid)}};
  EXPECT_THAT(sigmoid.Compute({1, -1}),
              Pointwise(FloatNear(1e-6f), {0.2689414f, 0.3775407f, 0.5f}));
}

TEST(SentenceHeadTest, AResidualIsAddedBehindTheActivation) {
  SentenceHead::Dense square{
      .linear = {.outputs = 2, .inputs = 2, .weight = {1, 0, 0, 1}, .bias = {}},
      .activation = HeadActivation::kRelu,
      .use_residual = true};
  EXPECT_THAT(SentenceHead{.modules = {square}}.Compute({3, -4}), ElementsAre(6, -4));
  SentenceHead::Dense wide = Widen(HeadActivation::kRelu);
  wide.use_residual = true;
  wide.residual = {.outputs = 3, .inputs = 2, .weight = {10, 0, 0, 10, 10, 10}};
  EXPECT_THAT(SentenceHead{.modules = {wide}}.Compute({1, -1}), ElementsAre(10, -10, 0));
}

TEST(SentenceHeadTest, ARowHasTheSameBitsAlone) {
  constexpr size_t kWidth = 37, kOutputs = 21, kRows = 5;
  SentenceHead::Dense dense{.linear = {.outputs = kOutputs, .inputs = kWidth},
                            .use_residual = true,
                            .residual = {.outputs = kOutputs, .inputs = kWidth}};
  for (size_t i = 0; i < kOutputs * kWidth; ++i) {
    dense.linear.weight.push_back(std::sin(static_cast<float>(i)));
    dense.residual.weight.push_back(std::cos(static_cast<float>(i)));
  }
  dense.linear.bias.assign(kOutputs, 0.25f);
  const HeadNorm norm{.gamma = std::vector<float>(kOutputs, 2), .beta = {}, .epsilon = 1e-5f};
  const SentenceHead head{.modules = {dense, norm, SentenceHead::Normalize{}}};
  std::vector<float> rows;
  for (size_t i = 0; i < kRows * kWidth; ++i) rows.push_back(std::sin(static_cast<float>(i * i)));
  const std::vector<float> together = head.Compute(rows, kRows);
  ASSERT_EQ(together.size(), kRows * kOutputs);
  for (size_t row = 0; row < kRows; ++row) {
    const auto from = rows.begin() + static_cast<std::ptrdiff_t>(row * kWidth);
    const std::vector<float> alone = head.Compute({from, from + kWidth});
    for (size_t i = 0; i < kOutputs; ++i) {
      EXPECT_EQ(together[row * kOutputs + i], alone[i]) << "row " << row << ", value " << i;
    }
  }
}

TEST(SentenceHeadTest, ModulesRunInTheirOrder) {
  const HeadNorm norm{.gamma = {1, 1, 1}, .beta = {3, 0, -3}, .epsilon = 0};
  const float up = std::sqrt(1.5f);  // of (-1, -0.5, 0): mean -0.5, variance 1 / 6
  const SentenceHead norm_last{.modules = {Widen(HeadActivation::kNone), norm}};
  EXPECT_THAT(norm_last.Compute({1, -1}), Pointwise(FloatNear(1e-5f), {3 - up, 0.0f, up - 3}));
  const SentenceHead unit{.modules = {SentenceHead::Normalize{}, Widen(HeadActivation::kNone)}};
  EXPECT_EQ(unit.InputWidth(), 2);
  EXPECT_THAT(unit.Compute({3, -4}), Pointwise(FloatNear(1e-5f), {-1.0f, -0.9f, -0.8f}));
}

TEST(SentenceHeadTest, TruncateKeepsTheFirstValuesOfEachRow) {
  const SentenceHead head{.modules = {SentenceHead::Normalize{}, SentenceHead::Truncate{2}}};
  EXPECT_EQ(head.InputWidth(), 0);
  EXPECT_EQ(head.OutputWidth(4), 2);
  EXPECT_THAT(head.Compute({2, 4, 4, 8, 0, 3, 0, 4}, 2),
              Pointwise(FloatNear(1e-6f), {0.2f, 0.4f, 0.0f, 0.6f}));
  EXPECT_EQ(head.OutputWidth(1), 1);
  EXPECT_THAT(head.Compute({7, -7}, 2), ElementsAre(1, -1));
}

}  // namespace
}  // namespace attendant
