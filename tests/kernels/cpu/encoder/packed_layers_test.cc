// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/packed_layers.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "kernels/cpu/encoder/smoothing_factors.h"
#include "tests/kernels/cpu/simd/available_kernels.h"
#include "tests/support/checkpoint.h"

namespace attendant::cpu {
namespace {

// Each matmul's input has factors of its own; wrong ones would only cost accuracy.
TEST(PackedLayersTest, Int8MatmulsHaveTheFactorsOfTheirInputs) {
  constexpr EncoderConfig kConfig{2, 2, 16, 48, 30, 40, 2, 1e-12f, Activation::kGeluErf};
  const EncoderWeights weights = RandomWeights(kConfig, 3);
  const std::vector<LayerSmoothing> predicted = PredictSmoothingFactors(kConfig, weights);
  for (const IsaLevel* level : AvailableLevels()) {
    const auto packed = PackedLayers::Create(kConfig, weights, {DType::kInt8, *level});
    ASSERT_TRUE(packed.ok()) << packed.status();
    for (size_t i = 0; i < predicted.size(); ++i) {
      EXPECT_NE(predicted[i].qkv, predicted[i].ffn_up);
      const auto& linears = packed->layer(static_cast<int64_t>(i)).linears;
      EXPECT_EQ(linears[kQkv].smoothing_factors, predicted[i].qkv);
      EXPECT_EQ(linears[kFfnUp].smoothing_factors, predicted[i].ffn_up);
      EXPECT_TRUE(linears[kAttentionOutput].smoothing_factors.empty());
      EXPECT_TRUE(linears[kFfnDown].smoothing_factors.empty());
    }
  }
}

// One that no token reached too.
TEST(PackedLayersTest, Int8ExpertsOfALayerHaveTheSameFactors) {
  EncoderConfig config{2, 2, 16, 48, 30, 40, 2, 1e-12f, Activation::kGeluErf};
  config.experts = 40;
  config.experts_per_token = 2;
  config.expert_layers.set(1);
  const EncoderWeights weights = RandomWeights(config, 3);
  const std::vector<LayerSmoothing> predicted = PredictSmoothingFactors(config, weights);
  for (const IsaLevel* level : AvailableLevels()) {
    const auto packed = PackedLayers::Create(config, weights, {DType::kInt8, *level});
    ASSERT_TRUE(packed.ok()) << packed.status();
    EXPECT_TRUE(packed->layer(0).experts.up.empty());
    EXPECT_EQ(packed->layer(1).linears[kFfnUp].weight, nullptr);
    ASSERT_EQ(packed->layer(1).experts.up.size(), 40u);
    for (const PackedLinear& up : packed->layer(1).experts.up) {
      EXPECT_EQ(up.smoothing_factors, predicted[1].ffn_up);
    }
    for (const PackedLinear& down : packed->layer(1).experts.down) {
      EXPECT_TRUE(down.smoothing_factors.empty());
      EXPECT_NE(down.weight, nullptr);
    }
  }
}

// Layers 0, 1 and 3 of the same tensors.
TEST(PackedLayersTest, LayersOfTheSameTensorsArePackedOnce) {
  constexpr EncoderConfig kConfig{4, 2, 16, 48, 30, 40, 2, 1e-12f, Activation::kGeluErf};
  EncoderWeights weights = RandomWeights(kConfig, 3);
  weights.layers[1] = weights.layers[3] = weights.layers[0];
  const std::vector<LayerSmoothing> predicted = PredictSmoothingFactors(kConfig, weights);
  for (const IsaLevel* level : AvailableLevels()) {
    for (const DType dtype : {DType::kF32, DType::kInt8}) {
      const auto packed = PackedLayers::Create(kConfig, weights, {dtype, *level});
      ASSERT_TRUE(packed.ok()) << packed.status();
      EXPECT_EQ(packed->sets.size(), 2);
      EXPECT_EQ(&packed->layer(1), &packed->layer(0));
      EXPECT_EQ(&packed->layer(3), &packed->layer(0));
      EXPECT_NE(&packed->layer(2), &packed->layer(0));
      EXPECT_NE(packed->layer(2).linears[kQkv].weight, packed->layer(0).linears[kQkv].weight);
      if (dtype == DType::kF32) continue;
      EXPECT_NEAR(packed->layer(2).linears[kQkv].smoothing_factors[5], predicted[2].qkv[5], 1e-5f);
      const float mean = packed->layer(0).linears[kFfnUp].smoothing_factors[5];
      const auto factor = [&](size_t layer) { return predicted[layer].ffn_up[5]; };
      EXPECT_NEAR(mean * mean * mean, factor(0) * factor(1) * factor(3), 1e-4f * mean);
    }
  }
}

}  // namespace
}  // namespace attendant::cpu
