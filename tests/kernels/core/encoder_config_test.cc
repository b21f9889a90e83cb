// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/encoder_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/core/weight_checks.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::HasSubstr;

EncoderConfig SmallConfig() {
  return {.layers = 2,
          .heads = 2,
          .hidden = 8,
          .ffn = 16,
          .vocab = 10,
          .max_positions = 12,
          .segment_types = 2,
          .layer_norm_epsilon = 1e-12f};
}

using Lie = std::pair<std::function<void(EncoderConfig&)>, const char*>;

void ExpectRefused(std::span<const Lie> lies) {
  for (const auto& [lie, message] : lies) {
    EncoderConfig config = SmallConfig();
    lie(config);
    const absl::Status status = Validate(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(EncoderConfigTest, AWindowMayHoldTheQueryAlone) {
  EncoderConfig config = SmallConfig();
  config.local_layers.set(1);
  EXPECT_TRUE(Validate(config).ok());
  for (const int64_t window : {int64_t{-1}, int64_t{1} << 40}) {
    config.window = window;
    const absl::Status status = Validate(config);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("window is ", window)));
  }
}

TEST(EncoderConfigTest, RefusesWhatCannotBe) {
  EXPECT_TRUE(Validate(SmallConfig()).ok());
  const Lie lies[] = {
      {[](EncoderConfig& c) { c.layers = 0; }, "layers is 0"},
      {[](EncoderConfig& c) { c.heads = -1; }, "heads is -1"},
      {[](EncoderConfig& c) { c.heads = 3; }, "multiple of heads, 3"},
      {[](EncoderConfig& c) { c.hidden = int64_t{1} << 40; }, "hidden is 1099511627776"},
      {[](EncoderConfig& c) { c.vocab = int64_t{1} << 28; },
       "token_embedding has 268435456 x 8 values"},
      {[](EncoderConfig& c) { c.layer_norm_epsilon = 0; }, "layer_norm_epsilon is 0"},
      {[](EncoderConfig& c) { c.layer_norm_epsilon = std::nanf(""); }, "layer_norm_epsilon is nan"},
      {[](EncoderConfig& c) { c.first_attention_norm = false; }, "needs norm_place to be kPre"},
      {[](EncoderConfig& c) { c.kv_heads = 3; },
       "heads is 2, it must be a multiple of kv_heads, 3"},
      {[](EncoderConfig& c) { c.kv_heads = -1; }, "kv_heads, -1"},
      {[](EncoderConfig& c) { c.head_width = -1; }, "head_width is -1"},
      {[](EncoderConfig& c) { c.head_width = kMaxWidth; }, "heads * head_width is 2097152"},
      {[](EncoderConfig& c) {
         c.positions = Positions::kRotary;
         c.heads = 8;
       },
       "head_dim is 1, rotary positions need an even one"},
      {[](EncoderConfig& c) {
         c.positions = Positions::kRotary;
         c.local_rotary.base = -1;
       },
       "local_rotary has base -1"},
      {[](EncoderConfig& c) {
         c.positions = Positions::kRotary;
         c.rotary.base = 0.99;
       },
       "rotary has base 0.99"},
      {[](EncoderConfig& c) {
         c.positions = Positions::kRotary;
         c.rotary.base = 1.01e15;
       },
       "rotary has base 1.01e+15"},
      {[](EncoderConfig& c) {
         c.positions = Positions::kRotary;
         c.rotary.frequency_scale = std::nan("");
       },
       "frequency_scale nan"},
      {[](EncoderConfig& c) {
         c.positions = Positions::kRotary;
         c.max_positions = kMaxComputedPositions + 1;
       },
       "max_positions is 131073"},
      {[](EncoderConfig& c) {
         c.score_bias = ScoreBias::kAlibi;
         c.max_positions = kMaxComputedPositions + 1;
       },
       "max_positions is 131073"},
      {[](EncoderConfig& c) { c.query_scale = -1; }, "query_scale is -1"},
      {[](EncoderConfig& c) { c.embedding_scale = 0; }, "embedding_scale is 0"},
      {[](EncoderConfig& c) { c.dropped_token = -2; }, "dropped_token is -2"},
      {[](EncoderConfig& c) { c.dropped_token = c.vocab; }, "dropped_token is"},
      {[](EncoderConfig& c) { c.embedding_width = kMaxWidth + 1; }, "embedding_width is 1048577"},
      {[](EncoderConfig& c) {
         c.norm_place = NormPlace::kBoth;
         c.second_attention_norm = true;
       },
       "second_attention_norm is true"},
  };
  ExpectRefused(lies);
}

TEST(EncoderConfigTest, RefusesTablesThatAreTooLarge) {
  const Lie lies[] = {
      {[](EncoderConfig& c) {
         c.positions = Positions::kRotary;
         c.max_positions = kMaxComputedPositions;
         c.hidden = c.heads * 4096;
       },
       "max_positions x head_dim is 536870912"},
      {[](EncoderConfig& c) {
         c.score_bias = ScoreBias::kAlibi;
         c.max_positions = kMaxComputedPositions;
         c.heads = c.hidden = 2048;
       },
       "heads x 2 max_positions is 536870912"},
  };
  ExpectRefused(lies);
}

TEST(EncoderConfigTest, RefusesRatesThatCannotBe) {
  const Lie lies[] = {
      {[](EncoderConfig& c) {
         c.positions = Positions::kRotary;
         c.rotary.rates.assign(static_cast<size_t>(c.head_dim()), 1.0f);
       },
       "rates, it must have one for each of"},
      {[](EncoderConfig& c) {
         c.positions = Positions::kRotary;
         c.rotary.rates.assign(static_cast<size_t>(c.head_dim() / 2), 1.01f);
       },
       "rotary has the rate 1.01"},
  };
  ExpectRefused(lies);
}

TEST(EncoderConfigTest, RefusesBiasesThatCannotBe) {
  const Lie lies[] = {
      {[](EncoderConfig& c) {
         c.score_bias = ScoreBias::kBuckets;
         c.bias_buckets = 6;
         c.bias_max_distance = 128;
       },
       "bias_buckets is 6"},
      {[](EncoderConfig& c) {
         c.score_bias = ScoreBias::kBuckets;
         c.bias_buckets = 32;
         c.bias_max_distance = 8;
       },
       "bias_max_distance 8"},
      {[](EncoderConfig& c) {
         c.score_bias = ScoreBias::kDisentangled;
         c.bias_buckets = 8;
         c.bias_max_distance = 3;
       },
       "bias_max_distance 3: the first must be a multiple of 4, the second at least 4"},
      {[](EncoderConfig& c) {
         c.score_bias = ScoreBias::kDisentangled;
         c.bias_buckets = 8;
         c.bias_max_distance = 12;
         c.causal = true;
       },
       "score_bias is kDisentangled, it does not go with causal"},
      {[](EncoderConfig& c) {
         c.score_bias = ScoreBias::kDisentangled;
         c.bias_buckets = 8;
         c.bias_max_distance = 12;
         c.kv_heads = 1;
       },
       "does not go with kv_heads"},
  };
  ExpectRefused(lies);
}

TEST(EncoderConfigTest, RefusesExpertsThatCannotBe) {
  const Lie lies[] = {
      {[](EncoderConfig& c) { c.expert_layers.set(1); }, "experts is 0"},
      {[](EncoderConfig& c) {
         c.expert_layers.set(1);
         c.experts = kMaxExperts + 1;
       },
       "experts is 1025"},
      {[](EncoderConfig& c) {
         c.expert_layers.set(1);
         c.experts = 4;
         c.experts_per_token = 5;
       },
       "experts_per_token is 5, it must be from 1 to 4"},
      {[](EncoderConfig& c) {
         c.expert_layers.set(1);
         c.experts = c.experts_per_token = 4;
         c.gated_ffn = true;
       },
       "gated_ffn is true"},
  };
  ExpectRefused(lies);
}

TEST(EncoderConfigTest, NamesTheSwitchThatIsNotComputed) {
  const EncoderConfig computed = SmallConfig();
  EXPECT_TRUE(CheckComputed("test", computed, computed).ok());
  const std::pair<std::function<void(EncoderConfig&)>, const char*> others[] = {
      {[](EncoderConfig& c) { c.activation = Activation::kRelu; }, "activation"},
      {[](EncoderConfig& c) { c.input = EncoderInput::kStates; }, "input"},
      {[](EncoderConfig& c) { c.norm_place = NormPlace::kPre; }, "norm_place"},
      {[](EncoderConfig& c) { c.final_norm = true; }, "final_norm"},
      {[](EncoderConfig& c) { c.final_norm_epsilon = 0.5f; }, "final_norm_epsilon"},
      {[](EncoderConfig& c) { c.biases = Biases::kOptional; }, "biases"},
      {[](EncoderConfig& c) { c.first_attention_norm = false; }, "first_attention_norm"},
      {[](EncoderConfig& c) { c.second_attention_norm = true; }, "second_attention_norm"},
      {[](EncoderConfig& c) { c.gated_ffn = true; }, "gated_ffn"},
      {[](EncoderConfig& c) { c.experts = 4; }, "experts"},
      {[](EncoderConfig& c) { c.experts_per_token = 4; }, "experts_per_token"},
      {[](EncoderConfig& c) { c.expert_layers.set(1); }, "expert_layers"},
      {[](EncoderConfig& c) { c.norm_kind = NormKind::kRms; }, "norm_kind"},
      {[](EncoderConfig& c) { c.embedding_norm = false; }, "embedding_norm"},
      {[](EncoderConfig& c) { c.embedding_width = 4; }, "embedding_width"},
      {[](EncoderConfig& c) { c.head_width = 8; }, "head_width"},
      {[](EncoderConfig& c) { c.kv_heads = 1; }, "kv_heads"},
      {[](EncoderConfig& c) { c.query_key_norm = QueryKeyNorm::kHead; }, "query_key_norm"},
      {[](EncoderConfig& c) { c.causal = true; }, "causal"},
      {[](EncoderConfig& c) { c.unattended_tokens = true; }, "unattended_tokens"},
      {[](EncoderConfig& c) { c.query_scale = 1; }, "query_scale"},
      {[](EncoderConfig& c) { c.embedding_scale = 2; }, "embedding_scale"},
      {[](EncoderConfig& c) { c.dropped_token = 2; }, "dropped_token"},
      {[](EncoderConfig& c) { c.positions = Positions::kRotary; }, "positions"},
      {[](EncoderConfig& c) { c.score_bias = ScoreBias::kAlibi; }, "score_bias"},
      {[](EncoderConfig& c) { c.local_layers.set(0); }, "local_layers"},
      {[](EncoderConfig& c) { c.layers = 3; }, "dimensions"},
  };
  for (const auto& [change, name] : others) {
    EncoderConfig config = computed;
    change(config);
    const absl::Status status = CheckComputed("test", computed, config);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

TEST(EncoderWeightsTest, AreThoseThatTheSwitchesAskFor) {
  EncoderConfig config = SmallConfig();
  config.final_norm = true;
  EncoderWeights weights = RandomWeights(SmallConfig(), 1);
  EXPECT_THAT(std::string(ValidateWeights(config, weights).message()),
              HasSubstr("final_norm.gamma is missing"));
  config = SmallConfig();
  config.gated_ffn = true;
  EXPECT_THAT(std::string(ValidateWeights(config, weights).message()),
              HasSubstr("layer 0.ffn_gate.weight is missing"));
  config = SmallConfig();
  config.score_bias = ScoreBias::kBuckets;
  config.bias_buckets = 32;
  config.bias_max_distance = 128;
  EXPECT_THAT(std::string(ValidateWeights(config, weights).message()),
              HasSubstr("score_bias is missing"));
  config.score_bias = ScoreBias::kDisentangled;
  EXPECT_THAT(std::string(ValidateWeights(config, weights).message()),
              HasSubstr("score_bias is missing"));
  config = SmallConfig();
  config.norm_place = NormPlace::kBoth;
  EXPECT_THAT(std::string(ValidateWeights(config, weights).message()),
              HasSubstr("layer 0.attention_output_norm.gamma is missing"));
  config = SmallConfig();
  config.second_attention_norm = true;
  EXPECT_THAT(std::string(ValidateWeights(config, weights).message()),
              HasSubstr("layer 0.attention_output_norm.gamma is missing"));
  config = SmallConfig();
  config.query_key_norm = QueryKeyNorm::kWhole;
  EXPECT_THAT(std::string(ValidateWeights(config, weights).message()),
              HasSubstr("layer 0.query_norm.gamma is missing"));
  config = SmallConfig();
  config.positions = Positions::kNone;
  EncoderWeights few = weights;
  few.position_embedding = {};
  EXPECT_TRUE(ValidateWeights(config, few).ok());
  EXPECT_FALSE(ValidateWeights(SmallConfig(), few).ok());
  config.norm_place = NormPlace::kPre;
  few.layers[0].attention_norm = {};
  EXPECT_FALSE(ValidateWeights(config, few).ok());
  config.first_attention_norm = false;
  EXPECT_TRUE(ValidateWeights(config, few).ok());
  config = SmallConfig();
  weights.layers[1].ffn_up.bias = {};
  config.biases = Biases::kOptional;
  EXPECT_TRUE(ValidateWeights(config, weights).ok());
  weights.token_embedding = {};
  EXPECT_FALSE(ValidateWeights(config, weights).ok());
  config.input = EncoderInput::kStates;
  config.vocab = config.max_positions = config.segment_types = 0;
  EXPECT_TRUE(ValidateWeights(config, weights).ok());
}

TEST(EncoderWeightsTest, NamesTheTensorThatDisagrees) {
  const EncoderConfig config = SmallConfig();
  EncoderWeights weights = RandomWeights(config, 1);
  EXPECT_TRUE(ValidateWeights(config, weights).ok());

  EncoderWeights missing = weights;
  missing.layers[1].ffn_up.bias = {};
  EXPECT_THAT(std::string(ValidateWeights(config, missing).message()),
              HasSubstr("tensor layer 1.ffn_up.bias is missing"));

  EncoderWeights wrong = weights;
  wrong.layers[0].ffn_down = wrong.layers[0].ffn_up;
  EXPECT_THAT(
      std::string(ValidateWeights(config, wrong).message()),
      HasSubstr(
          "tensor layer 0.ffn_down.weight has shape [16, 8], the configuration asks for [8, 16]"));

  EncoderConfig with_experts = config;
  with_experts.experts = 3;
  with_experts.experts_per_token = 1;
  with_experts.expert_layers.set(1);
  EXPECT_THAT(std::string(ValidateWeights(with_experts, weights).message()),
              HasSubstr("tensor layer 1.router is missing"));
  EncoderWeights experts = RandomWeights(with_experts, 1);
  experts.layers[1].ffn_up = experts.layers[1].ffn_down = {};
  experts.layers[1].experts_bias = {};
  EXPECT_TRUE(ValidateWeights(with_experts, experts).ok());
  experts.layers[1].experts_bias = experts.layers[1].ffn_norm.beta;
  EXPECT_TRUE(ValidateWeights(with_experts, experts).ok());
  experts.layers[1].experts_bias = experts.layers[0].ffn_up.bias;
  EXPECT_THAT(std::string(ValidateWeights(with_experts, experts).message()),
              HasSubstr("layer 1.experts_bias has shape [16], the configuration asks for [8]"));
  experts.layers[1].experts.pop_back();
  EXPECT_THAT(std::string(ValidateWeights(with_experts, experts).message()),
              HasSubstr("tensor layer 1.expert 2.up is missing"));

  EncoderWeights few = weights;
  few.layers.pop_back();
  EXPECT_THAT(std::string(ValidateWeights(config, few).message()), HasSubstr("1 layers"));
}

}  // namespace
}  // namespace attendant
