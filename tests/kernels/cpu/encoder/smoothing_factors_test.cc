// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/smoothing_factors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

// The root mean square of each channel, as the factors have it.
std::vector<double> FactorsOf(const std::vector<std::vector<double>>& tokens) {
  std::vector<double> factors;
  for (size_t i = 0; i < tokens.front().size(); ++i) {
    double square = 0;
    for (const std::vector<double>& token : tokens) {
      square += token[i] * token[i] / static_cast<double>(tokens.size());
    }
    factors.push_back(std::pow(square, -0.25));
  }
  return factors;
}

void ExpectNear(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << i;
}

// 16 words at 16 positions: all are taken, through the layer's own formulas.
TEST(SmoothingFactorsTest, AreThoseOfTheVocabularysTokens) {
  EncoderConfig config = kConfig;
  config.vocab = config.max_positions = 16;
  const EncoderWeights weights = RandomWeights(config, 3);
  const EncoderLayerWeights& layer = weights.layers.front();
  // What attention keeps of a value is a guess; without values there is nothing to guess.
  std::fill_n(Mutable(layer.value.weight), layer.value.weight.size(), 0.0f);
  Mutable(layer.attention_norm.gamma)[7] = 4;
  std::vector<std::vector<double>> states(16), attended(16), next(16);
  for (size_t token = 0; token < 16; ++token) {
    const auto row = static_cast<int64_t>(token);
    std::vector<double> word, position;
    for (int64_t i = 0; i < config.hidden; ++i) {
      word.push_back(weights.token_embedding.row(row)[i]);
      position.push_back(weights.position_embedding.row(row)[i] +
                         weights.segment_embedding.row(0)[i]);
    }
    states[token] = AddNorm(word, position, weights.embedding_norm);
    const std::vector<double> context = Apply(layer.value, states[token]);
    attended[token] =
        AddNorm(states[token], Apply(layer.attention_output, context), layer.attention_norm);
    std::vector<double> intermediate = Apply(layer.ffn_up, attended[token]);
    for (double& x : intermediate) x = x / 2 * std::erfc(-x / std::sqrt(2.0));
    next[token] = AddNorm(attended[token], Apply(layer.ffn_down, intermediate), layer.ffn_norm);
  }
  const std::vector<LayerSmoothing> predicted = PredictSmoothingFactors(config, weights);
  ASSERT_EQ(predicted.size(), 2u);
  ExpectNear(predicted[0].qkv, FactorsOf(states));
  ExpectNear(predicted[0].ffn_up, FactorsOf(attended));
  ExpectNear(predicted[1].qkv, FactorsOf(next));
}

// Attention keeps a part of what distinguishes values, and all of what they share.
TEST(SmoothingFactorsTest, AttentionKeepsAPartOfTheDistances) {
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

  // Values that are the same for all tokens are the context's.
  std::fill_n(Mutable(layer.value.weight), layer.value.weight.size(), 0.0f);
  Mutable(layer.value.bias)[5] = 50;
  EXPECT_LT(PredictSmoothingFactors(config, weights)[0].ffn_up[5], 0.6)
      << "a channel of 500 among channels of 1 is about 4 after the norm, the root of 16";
}

TEST(SmoothingFactorsTest, QueriesThatShareValuesHaveTheSameContext) {
  EncoderConfig config = kConfig;
  config.kv_heads = 1;
  const EncoderWeights weights = RandomWeights(config, 3);
  const EncoderLayerWeights& layer = weights.layers.front();
  for (const LinearWeights* linear : {&layer.value, &layer.attention_output}) {
    std::fill_n(Mutable(linear->weight), linear->weight.size(), 0.0f);
    std::fill_n(Mutable(linear->bias), linear->bias.size(), 0.0f);
  }
  for (int64_t i = 0; i < config.hidden; ++i)
    Mutable(layer.attention_output.weight)[i * config.hidden + i] = 1;
  Mutable(layer.value.bias)[5] = 500;
  const std::vector<float> up = PredictSmoothingFactors(config, weights)[0].ffn_up;
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(i == 5 || i == 13, up[i] < 0.65f) << i << " " << up[i];
}

TEST(SmoothingFactorsTest, OnlyLayerNormSubtractsTheMean) {
  for (const NormKind kind : {NormKind::kLayer, NormKind::kRms}) {
    EncoderConfig config = kConfig;
    config.norm_kind = kind;
    const EncoderWeights weights = RandomWeights(config, 3);
    for (const auto& table :
         {weights.token_embedding, weights.position_embedding, weights.segment_embedding}) {
      std::fill_n(Mutable(table), table.size(), 2.0f);
    }
    std::fill_n(Mutable(weights.embedding_norm.gamma), config.hidden, 1.0f);
    std::fill_n(Mutable(weights.embedding_norm.beta), config.hidden, 0.0f);
    const float factor = PredictSmoothingFactors(config, weights)[0].qkv[3];
    EXPECT_NEAR(factor, kind == NormKind::kRms ? 1 : 1000, 1e-2);
  }
}

// A linear layer reads the norm of its branch, whatever the size of the states.
TEST(SmoothingFactorsTest, PreNormFactorsAreThoseOfTheBranchsNorm) {
  for (const NormPlace place : {NormPlace::kPre, NormPlace::kPost}) {
    EncoderConfig config = kConfig;
    config.norm_place = place;
    const EncoderWeights weights = RandomWeights(config, 3);
    std::fill_n(Mutable(weights.embedding_norm.beta), config.hidden, 0.0f);
    std::fill_n(Mutable(weights.embedding_norm.gamma), config.hidden, 1.0f);
    const std::vector<float> small = PredictSmoothingFactors(config, weights)[0].qkv;
    std::fill_n(Mutable(weights.embedding_norm.gamma), config.hidden, 9.0f);
    const std::vector<float> large = PredictSmoothingFactors(config, weights)[0].qkv;
    for (size_t i = 0; i < small.size(); ++i) {
      EXPECT_NEAR(small[i] / large[i], place == NormPlace::kPre ? 1 : 3, 1e-3) << i;
    }
  }
}

// Experts that are all the same are one network, with the sum of their weights.
TEST(SmoothingFactorsTest, ExpertsComputeTheTokensThatChooseThem) {
  EncoderConfig config = kConfig;
  config.experts = 3;
  config.expert_layers.set(0);
  EncoderWeights weights = RandomWeights(config, 3);
  EncoderLayerWeights& layer = weights.layers.front();
  for (ExpertWeights& expert : layer.experts) {
    expert.up = layer.ffn_up.weight;
    for (int64_t i = 0; i < config.ffn; ++i) {
      for (int64_t j = 0; j < config.hidden; ++j) {
        Mutable(expert.down)[i * config.hidden + j] = layer.ffn_down.weight.row(j)[i];
      }
    }
  }
  layer.experts_bias = layer.ffn_down.bias;
  std::fill_n(Mutable(layer.ffn_up.bias), config.ffn, 0.0f);
  EncoderConfig dense = config;
  dense.expert_layers.reset();
  const std::vector<float> expected = PredictSmoothingFactors(dense, weights)[1].qkv;
  const auto largest_difference = [&] {
    const std::vector<float> factors = PredictSmoothingFactors(config, weights)[1].qkv;
    float largest = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::abs(factors[i] - expected[i]));
    }
    return largest;
  };
  config.experts_per_token = 3;
  EXPECT_LT(largest_difference(), 1e-4);
  // None computes a token that does not choose it.
  std::fill_n(Mutable(layer.router), layer.router.size(), 0.0f);
  config.experts_per_token = 1;
  EXPECT_GT(largest_difference(), 1e-2) << "each has a third of the weight";
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
