// SPDX-License-Identifier: Apache-2.0
#include "kernels/heads/sequence_classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

std::vector<float> Logits(const SequenceClassifier& head, const std::vector<float>& pooled) {
  std::vector<float> logits(static_cast<size_t>(head.num_labels()));
  head.ComputeLogits(pooled, logits);
  return logits;
}

SequenceClassifier WithDense(HeadActivation activation) {
  return {.dense = {.outputs = 2, .inputs = 2, .weight = {1, 2, -3, 1}, .bias = {0.5f, 0}},
          .activation = activation,
          .out = {.outputs = 1, .inputs = 2, .weight = {10, 1}, .bias = {0.25f}}};
}

TEST(SequenceClassifierTest, WithoutDenseItIsOneLinear) {
  const SequenceClassifier head{
      .out = {.outputs = 2, .inputs = 3, .weight = {1, 2, 3, 4, 5, 6}, .bias = {10, 20}}};
  EXPECT_THAT(Logits(head, {1, 0.5f, -1}), ElementsAre(9, 20.5f));
}

TEST(SequenceClassifierTest, AppliesItsActivation) {
  const float a = 1 * 0.25f + 2 * -0.5f + 0.5f, b = -3 * 0.25f - 0.5f;  // -0.25, -1.25
  const auto logit = [](double x, double y) {
    return FloatNear(static_cast<float>(10 * x + y + 0.25), 1e-6f);
  };
  const auto gelu = [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); };
  const std::vector<float> pooled = {0.25f, -0.5f};
  EXPECT_THAT(Logits(WithDense(HeadActivation::kNone), pooled), ElementsAre(logit(a, b)));
  EXPECT_THAT(Logits(WithDense(HeadActivation::kRelu), pooled), ElementsAre(logit(0, 0)));
  EXPECT_THAT(Logits(WithDense(HeadActivation::kTanh), pooled),
              ElementsAre(logit(std::tanh(a), std::tanh(b))));
  EXPECT_THAT(Logits(WithDense(HeadActivation::kGeluErf), pooled),
              ElementsAre(logit(gelu(a), gelu(b))));
}

TEST(SequenceClassifierTest, NormalizesBehindTheActivation) {
  SequenceClassifier head = WithDense(HeadActivation::kNone);
  head.norm.gamma = {2, 3};
  head.norm.beta = {0.5f, -0.5f};
  head.norm.epsilon = 0.75f;
  // (-0.25, -1.25): mean -0.75, variance 0.25, so 0.5 / sqrt(0.25 + 0.75) = 0.5.
  EXPECT_THAT(Logits(head, {0.25f, -0.5f}),
              ElementsAre(FloatNear(10 * (2 * 0.5f + 0.5f) + (3 * -0.5f - 0.5f) + 0.25f, 1e-5f)));
  head.norm.beta.clear();
  EXPECT_THAT(Logits(head, {0.25f, -0.5f}),
              ElementsAre(FloatNear(10 * (2 * 0.5f) + 3 * -0.5f + 0.25f, 1e-5f)));
}

// Widths below, at and above the lanes of a sum.
TEST(SequenceClassifierTest, EveryWidthIsSummedWhole) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> value(-1, 1);
  for (int64_t width = 1; width <= 50; ++width) {
    SequenceClassifier head{.out = {.outputs = 1, .inputs = width}};
    std::vector<float> pooled;
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) {
      pooled.push_back(value(random));
      head.out.weight.push_back(value(random));
      sum += double{pooled.back()} * double{head.out.weight.back()};
    }
    EXPECT_THAT(Logits(head, pooled), ElementsAre(FloatNear(static_cast<float>(sum), 1e-5f)));
  }
}

TEST(ApplyActivationTest, TurnsLogitsIntoScores) {
  std::vector<float> logits = {1, -2};
  ApplyActivation(ScoreActivation::kNone, logits);
  EXPECT_THAT(logits, ElementsAre(1, -2));
  ApplyActivation(ScoreActivation::kSigmoid, logits);
  EXPECT_THAT(logits, ElementsAre(FloatNear(0.7310586f, 1e-6f), FloatNear(0.1192029f, 1e-6f)));
  logits = {1, 2, 3};
  ApplyActivation(ScoreActivation::kSoftmax, logits);
  EXPECT_THAT(logits, ElementsAre(FloatNear(0.0900306f, 1e-6f), FloatNear(0.2447285f, 1e-6f),
                                  FloatNear(0.6652410f, 1e-6f)));
}

TEST(ApplyActivationTest, LargeLogitsDoNotOverflow) {
  std::vector<float> logits = {1000, -1000, 999};
  ApplyActivation(ScoreActivation::kSoftmax, logits);
  EXPECT_THAT(logits, ElementsAre(FloatNear(0.7310586f, 1e-6f), 0, FloatNear(0.2689414f, 1e-6f)));
  logits = {1000, -1000};
  ApplyActivation(ScoreActivation::kSigmoid, logits);
  EXPECT_THAT(logits, ElementsAre(1, 0));
}

}  // namespace
}  // namespace attendant
