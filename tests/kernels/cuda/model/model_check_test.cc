// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/model_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/support/cuda/encoder_case.h"

namespace attendant::cuda {
namespace {

using cuda_test::ListVariants;
using cuda_test::RandomEncoder;
using cuda_test::SmallConfig;
using cuda_test::Variant;

// What is said of the configuration after a change.
std::string Refusal(DType dtype, int32_t code,
                    const std::function<void(AttendantCudaConfig&)>& change) {
  AttendantCudaConfig config = SmallConfig();
  change(config);
  const AttendantCudaStatus status = CheckConfig(config, dtype).for_caller();
  EXPECT_EQ(status.code, code) << status.message;
  return status.message;
}

TEST(CheckConfigTest, NamesWhatMakesNoSense) {
  const auto refusal = [](const std::function<void(AttendantCudaConfig&)>& change) {
    return Refusal(DType::kF32, ATTENDANT_CUDA_INVALID_ARGUMENT, change);
  };
  EXPECT_EQ(refusal([](auto& c) { c.layers = 0; }), "layers is 0");
  EXPECT_EQ(refusal([](auto& c) { c.window = -1; }), "window is -1");
  EXPECT_EQ(refusal([](auto& c) { c.embedding_width = -1; }), "embedding_width is -1");
  EXPECT_EQ(refusal([](auto& c) { c.head_width = int64_t{1} << 40; }),
            "head_width is 1099511627776");
  for (const std::string& message :
       {refusal([](auto& c) { c.kv_heads = 3; }), refusal([](auto& c) { c.norm_place = 3; }),
        refusal([](auto& c) { c.query_scale = -1; }), refusal([](auto& c) { c.activation = 4; })}) {
    EXPECT_NE(message.find("do not make an encoder"), std::string::npos) << message;
  }
}

TEST(CheckConfigTest, NamesWhatThereIsNoKernelFor) {
  const auto refusal = [](DType dtype, const std::function<void(AttendantCudaConfig&)>& change) {
    return Refusal(dtype, ATTENDANT_CUDA_UNIMPLEMENTED, change);
  };
  EXPECT_EQ(refusal(DType::kBf16, [](auto& c) { c.head_width = 264; }),
            "attention has no kernel for head_dim 264 in this format");
  EXPECT_EQ(refusal(DType::kBf16, [](auto& c) { c.embedding_width = 20; }),
            "embedding_width 20 must be a multiple of 8 on a GPU in bf16, at most 8192");
  EXPECT_EQ(refusal(DType::kFp8, [](auto& c) { c.embedding_width = 8208; }),
            "embedding_width 8208 must be a multiple of 16 on a GPU in fp8, at most 8192");
  EXPECT_EQ(refusal(DType::kFp8,
                    [](auto& c) {
                      c.head_width = 8;
                      c.kv_heads = 1;
                    }),
            "heads and kv_heads times head_dim, 16 and 8, must be multiples of 16 on a GPU in fp8");
}

TEST(CheckTensorsTest, NormsOfQueriesHaveALimit) {
  AttendantCudaConfig config = SmallConfig();
  config.head_width = 256;
  config.heads = 33;
  config.layers = 1;
  const auto message = [&](bool norms) {
    const RandomEncoder encoder(config, 1, {.whole_query_key_norm = norms});
    const AttendantCudaStatus status = CheckTensors(config, encoder.weights()).for_caller();
    EXPECT_EQ(status.code, norms ? ATTENDANT_CUDA_UNIMPLEMENTED : ATTENDANT_CUDA_OK);
    return std::string(status.message);
  };
  EXPECT_EQ(message(false), "");
  EXPECT_EQ(message(true), "queries of 8448 values have a norm, on a GPU they have at most 8192");
}

TEST(CheckTensorsTest, WhatTheConfigurationAsksForMustBeThere) {
  for (const Variant& variant : ListVariants()) {
    SCOPED_TRACE(variant.name);
    const RandomEncoder encoder(variant.config, 1, variant.parts);
    const auto code =
        [&](const std::function<void(AttendantCudaWeights&, AttendantCudaLayer&)>& change) {
          AttendantCudaWeights weights = encoder.weights();
          std::vector<AttendantCudaLayer> layers(weights.layers,
                                                 weights.layers + variant.config.layers);
          weights.layers = layers.data();
          change(weights, layers[2]);
          return CheckTensors(variant.config, weights).code();
        };
    EXPECT_EQ(code([](auto&, auto&) {}), ATTENDANT_CUDA_OK);
    EXPECT_EQ(code([](auto& w, auto&) { w.segment_embedding = nullptr; }),
              ATTENDANT_CUDA_INVALID_ARGUMENT);
    EXPECT_EQ(code([](auto&, auto& l) { l.ffn_up.weight = nullptr; }),
              ATTENDANT_CUDA_INVALID_ARGUMENT);
    EXPECT_EQ(code([](auto&, auto& l) { l.attention_norm.gamma = nullptr; }),
              ATTENDANT_CUDA_INVALID_ARGUMENT);
    const auto refused_if = [](bool needed) {
      return needed ? ATTENDANT_CUDA_INVALID_ARGUMENT : ATTENDANT_CUDA_OK;
    };
    EXPECT_EQ(code([](auto&, auto& l) { l.ffn_gate.weight = nullptr; }),
              refused_if(variant.config.gated_ffn != 0));
    EXPECT_EQ(code([](auto&, auto& l) { l.key_norm = nullptr; }),
              refused_if(variant.parts.query_key_norm));
    EXPECT_EQ(code([](auto&, auto& l) { l.whole_key_norm.gamma = nullptr; }),
              refused_if(variant.parts.whole_query_key_norm));
    EXPECT_EQ(code([](auto&, auto& l) { l.ffn_output_norm.gamma = nullptr; }),
              refused_if(variant.config.norm_place == ATTENDANT_CUDA_NORM_BOTH));
    EXPECT_EQ(code([](auto& w, auto&) { w.embedding_projection.weight = nullptr; }),
              refused_if(variant.config.embedding_width > 0));
    EXPECT_EQ(code([](auto& w, auto&) { w.local_rotary = nullptr; }),
              refused_if(variant.parts.local_rotary_base > 0));
  }
}

}  // namespace
}  // namespace attendant::cuda
