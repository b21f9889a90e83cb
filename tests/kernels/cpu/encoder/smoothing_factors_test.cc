// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/smoothing_factors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/checkpoint.h"

namespace attendant::cpu {
namespace {

constexpr EncoderConfig kConfig{2, 2, 16, 48, 30, 40, 2, 1e-12f, Activation::kGeluErf};

// A weight's values, to change them.
template <typename View>
float* Mutable(const View& view) {
  return const_cast<float*>(view.data());
}

std::vector<double> Apply(const LinearWeights& linear, const std::vector<double>& x) {
  std::vector<double> y;
  for (int64_t i = 0; i < linear.weight.dim(0); ++i) {
    double sum = linear.bias.data()[i];
    for (size_t j = 0; j < x.size(); ++j) sum += linear.weight.row(i)[j] * x[j];
    y.push_back(sum);
  }
  return y;
}

std::vector<double> AddNorm(const std::vector<double>& a, const std::vector<double>& b,
                            const LayerNormWeights& norm) {
  const auto count = static_cast<double>(a.size());
  double mean = 0, variance = 0;
  for (size_t i = 0; i < a.size(); ++i) mean += (a[i] + b[i]) / count;
  for (size_t i = 0; i < a.size(); ++i) variance += std::pow(a[i] + b[i] - mean, 2) / count;
  std::vector<double> y;
  for (size_t i = 0; i < a.size(); ++i) {
    y.push_back((a[i] + b[i] - mean) / std::sqrt(variance) * norm.gamma.data()[i] +
                norm.beta.data()[i]);
  }
  return y;
}

// Tokens drawn as the prediction supposes them, through the layer's own formulas: each channel's
// root mean square is the smoothing factor to the power -2.
TEST(SmoothingFactorsTest, PredictWhatDrawnTokensShow) {
  const EncoderWeights weights = RandomWeights(kConfig, 3);
  const EncoderLayerWeights& layer = weights.layers.front();
  // What attention does to the variance is a guess; without values there is nothing to guess.
  std::fill_n(Mutable(layer.value.weight), layer.value.weight.size(), 0.0f);
  for (int64_t i = 0; i < kConfig.hidden; ++i) {
    Mutable(weights.embedding_norm.gamma)[i] = i == 5 ? 6.0f : 0.5f;
    Mutable(layer.attention_norm.gamma)[i] = i == 7 ? 4.0f : 1.0f;
  }
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> up_squares(16), next_squares(16);
  constexpr int kTokens = 20000;
  for (int token = 0; token < kTokens; ++token) {
    std::vector<double> states;
    for (size_t i = 0; i < 16; ++i) {
      states.push_back(normal(random) * weights.embedding_norm.gamma.data()[i] +
                       weights.embedding_norm.beta.data()[i]);
    }
    const std::vector<double> context = Apply(layer.value, states);
    states = AddNorm(states, Apply(layer.attention_output, context), layer.attention_norm);
    for (size_t i = 0; i < 16; ++i) up_squares[i] += states[i] * states[i] / kTokens;
    std::vector<double> intermediate = Apply(layer.ffn_up, states);
    for (double& x : intermediate) x = x / 2 * std::erfc(-x / std::sqrt(2.0));
    states = AddNorm(states, Apply(layer.ffn_down, intermediate), layer.ffn_norm);
    for (size_t i = 0; i < 16; ++i) next_squares[i] += states[i] * states[i] / kTokens;
  }
  const std::vector<LayerSmoothing> predicted = PredictSmoothingFactors(kConfig, weights);
  ASSERT_EQ(predicted.size(), 2u);
  for (size_t i = 0; i < 16; ++i) {
    const double gamma = weights.embedding_norm.gamma.data()[i];
    const double beta = weights.embedding_norm.beta.data()[i];
    EXPECT_NEAR(predicted[0].qkv[i], std::pow(gamma * gamma + beta * beta, -0.25), 1e-4);
    // Independence and a fixed norm are approximations.
    EXPECT_NEAR(predicted[0].ffn_up[i] * std::pow(up_squares[i], 0.25), 1, 0.4) << i;
    EXPECT_NEAR(predicted[1].qkv[i] * std::pow(next_squares[i], 0.25), 1, 0.4) << i;
  }
}

// Attention keeps a tenth to all of its values' variance; more or nothing would make up channels.
TEST(SmoothingFactorsTest, AttentionTakesAPartOfTheVariance) {
  EncoderConfig config = kConfig;
  config.layers = 1;
  const EncoderWeights weights = RandomWeights(config, 3);
  const EncoderLayerWeights& layer = weights.layers.front();
  for (const LayerNormWeights* norm : {&weights.embedding_norm, &layer.attention_norm}) {
    std::fill_n(Mutable(norm->gamma), config.hidden, 1.0f);
    std::fill_n(Mutable(norm->beta), config.hidden, 0.0f);
  }
  for (const LinearWeights* linear : {&layer.value, &layer.attention_output}) {
    std::fill_n(Mutable(linear->weight), linear->weight.size(), 0.0f);
    std::fill_n(Mutable(linear->bias), config.hidden, 0.0f);
  }
  for (int64_t i = 0; i < config.hidden; ++i)
    Mutable(layer.value.weight)[i * config.hidden + i] = 1;
  Mutable(layer.attention_output.weight)[5 * config.hidden + 5] = 10;
  // Of variance 1, and channel 5 of 1 + 100 x the part that is kept; then they are normalized.
  const auto factor = [](double kept) { return std::pow(1 / ((16 + 100 * kept) / 16), -0.25); };
  const std::vector<float> up = PredictSmoothingFactors(config, weights)[0].ffn_up;
  EXPECT_GT(up[0], factor(0.1) * 0.99);
  EXPECT_LT(up[0], factor(1) * 1.01);
}

// A linear layer reads the norm of its branch, whatever the size of the states.
TEST(SmoothingFactorsTest, PreNormFactorsAreThoseOfTheBranchsNorm) {
  EncoderConfig config = kConfig;
  config.norm_place = NormPlace::kPre;
  const EncoderWeights weights = RandomWeights(config, 3);
  std::fill_n(Mutable(weights.embedding_norm.gamma), config.hidden, 9.0f);
  std::fill_n(Mutable(weights.embedding_norm.beta), config.hidden, 0.0f);
  const std::vector<LayerSmoothing> predicted = PredictSmoothingFactors(config, weights);
  const LayerNormWeights& norm = weights.layers.front().attention_norm;
  for (size_t i = 0; i < 16; ++i) {
    const double gamma = norm.gamma.data()[i], beta = norm.beta.data()[i];
    EXPECT_NEAR(predicted[0].qkv[i], std::pow(gamma * gamma + beta * beta, -0.25), 1e-4);
  }
}

TEST(SmoothingFactorsTest, StayPositiveAndFiniteForAnyWeights) {
  for (const float extreme : {0.0f, 1e-30f, 1e30f, -3e38f}) {
    const EncoderWeights weights = RandomWeights(kConfig, 3);
    for (const EncoderLayerWeights& layer : weights.layers) {
      Mutable(layer.ffn_down.weight)[5] = extreme;
      Mutable(layer.attention_norm.gamma)[2] = extreme;
      Mutable(layer.attention_norm.beta)[2] = extreme;
    }
    for (const LayerSmoothing& layer : PredictSmoothingFactors(kConfig, weights)) {
      for (const std::vector<float>* one : {&layer.qkv, &layer.ffn_up}) {
        for (float factor : *one) {
          EXPECT_GT(factor, 0) << extreme;
          EXPECT_TRUE(std::isfinite(factor)) << extreme;
        }
      }
    }
  }
}

}  // namespace
}  // namespace attendant::cpu
