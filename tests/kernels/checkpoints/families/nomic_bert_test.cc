// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/kernels/checkpoints/families/family_support.h"

namespace attendant {
namespace {

// As the code that came with the first checkpoints has it.
std::string OldNomic(const std::string& more, const std::string& activation = "swiglu") {
  return absl::StrCat(
      R"({"model_type": "nomic_bert", "n_layer": 3, "n_head": 4, "n_embd": 48, "n_inner": 112,
      "vocab_size": 97, "n_positions": 42, "layer_norm_epsilon": 1e-12, "qkv_proj_bias": false,
      "mlp_fc1_bias": false, "mlp_fc2_bias": false, "rotary_emb_fraction": 1.0, "auto_map":
      {"AutoModel": "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel"},
      "activation_function": ")",
      activation, "\"", more, "}");
}

TEST(NomicBertTest, OldAndNewFieldsSayTheSame) {
  const auto now = Read(Bert("nomic_bert", R"(, "hidden_act": "silu", "head_dim": 12,
      "rope_parameters": {"rope_theta": 700, "rope_type": "default"})"));
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->encoder.activation, Activation::kSilu);
  EXPECT_EQ(now->encoder.positions, Positions::kRotary);
  EXPECT_EQ(now->encoder.rotary.base, 700);
  EXPECT_TRUE(now->encoder.gated_ffn);
  EXPECT_FALSE(now->biases.qkv || now->biases.attention_output || now->biases.ffn_up);
  const auto old = Read(OldNomic(", \"rotary_emb_base\": 700"));
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_TRUE(old->encoder == now->encoder);
  EXPECT_FALSE(old->biases.qkv || old->biases.attention_output || old->biases.ffn_up);
  const auto defaults = Read(OldNomic("", "geglu"));
  ASSERT_TRUE(defaults.ok()) << defaults.status();
  EXPECT_EQ(defaults->encoder.rotary.base, 1000);
  EXPECT_EQ(defaults->encoder.activation, Activation::kGeluErf);
}

// That code derives its configuration from GPT-2's.
TEST(NomicBertTest, AbsentFieldsHaveTheDefaultsOfItsCode) {
  const std::string all = OldNomic("", "geglu");
  const auto config = Read(absl::StrReplaceAll(all, {{R"("layer_norm_epsilon": 1e-12,)", ""}}));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.layer_norm_epsilon, 1e-5f);
  ExpectUnimplemented(
      absl::StrReplaceAll(all, {{R"("activation_function": "geglu")", R"("other": 0)"}}),
      "`activation_function` is `gelu_new`");
}

TEST(NomicBertTest, ServesWhatIsNotScaled) {
  const auto config =
      Read(OldNomic(", \"rotary_scaling_factor\": 2, \"max_trained_positions\": 20"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.max_positions, 20);
  EXPECT_TRUE(absl::IsInvalidArgument(Read(OldNomic(", \"rotary_scaling_factor\": 2")).status()));
}

// Where the factor is absent the code has 1, which scales too; null is none.
TEST(NomicBertTest, AnAbsentScalingFactorScales) {
  const auto positions = [](const std::string& more) {
    const auto config = Read(
        absl::StrReplaceAll(OldNomic(more), {{"\"n_positions\": 42", "\"n_positions\": 8192"}}));
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? config->encoder.max_positions : 0;
  };
  EXPECT_EQ(positions(", \"rotary_scaling_factor\": null"), 8192);
  EXPECT_EQ(positions(", \"rotary_scaling_factor\": null, \"max_trained_positions\": 20"), 8192);
  EXPECT_EQ(positions(""), 2048);
  EXPECT_EQ(positions(", \"max_trained_positions\": 20"), 20);
}

TEST(NomicBertTest, RefusesByName) {
  for (const char* field : {"prenorm", "use_rms_norm", "causal", "parallel_block",
                            "rotary_emb_interleaved", "scale_attn_by_inverse_layer_idx"}) {
    ExpectUnimplemented(OldNomic(absl::StrCat(", \"", field, "\": true")), field);
  }
  ExpectUnimplemented(OldNomic(", \"rotary_emb_scale_base\": 512"), "`rotary_emb_scale_base`");
  ExpectUnimplemented(OldNomic(", \"scale_attn_weights\": false"), "`scale_attn_weights` is false");
  ExpectUnimplemented(OldNomic("", "gelu_new"), "`activation_function` is `gelu_new`");
  ExpectUnimplemented(absl::StrReplaceAll(OldNomic(""), {{"_fraction\": 1.0", "_fraction\": 0.5"}}),
                      "`rotary_emb_fraction` is 0.5");
  ExpectUnimplemented(Bert("nomic_bert", ", \"head_dim\": 16"), "`head_dim` is 16");
  ExpectUnimplemented(Bert("nomic_bert", R"(, "rope_parameters": {"rope_type": "dynamic"})"),
                      "`rope_type` is `dynamic`");
}

// Of v2: layers with experts, and plain ones.
std::string NomicExperts(const std::string& more, const std::string& every = "2") {
  return OldNomic(
      absl::StrCat(R"(, "num_experts": 8, "moe_top_k": 2, "moe_every_n_layers": )", every, more),
      "gelu");
}

TEST(NomicExpertsTest, AreInEverySecondLayer) {
  const auto config = Read(NomicExperts(R"(, "expert_choice_router": false, "ffn_div": 1,
      "moe_normalize_expert_weights": false, "num_shared_experts": 0, "use_rms_norm": null)"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->encoder.experts, 8);
  EXPECT_EQ(config->encoder.experts_per_token, 2);
  EXPECT_EQ(config->encoder.expert_layers.to_ullong(), 0b010u);  // of three
  EXPECT_EQ(config->encoder.activation, Activation::kGeluErf);
  EXPECT_FALSE(config->encoder.gated_ffn);
}

TEST(NomicExpertsTest, AreWhereTheCodeHasThem) {
  EXPECT_EQ(Read(NomicExperts("", "3"))->encoder.expert_layers.to_ullong(), 0b010u);
  for (const char* step : {"0", "1", "-1"}) {
    const auto none = Read(NomicExperts("", step));
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_TRUE(none->encoder.expert_layers.none()) << step;
    EXPECT_EQ(none->encoder.experts, 0);
  }
}

TEST(NomicExpertsTest, RefusesByName) {
  for (const char* field : {"expert_choice_router", "moe_normalize_expert_weights"}) {
    ExpectUnimplemented(NomicExperts(absl::StrCat(", \"", field, "\": true")), field);
  }
  ExpectUnimplemented(NomicExperts(", \"num_shared_experts\": 1"), "`num_shared_experts` is 1");
  ExpectUnimplemented(NomicExperts(", \"ffn_div\": 2"), "`ffn_div` is 2");
  for (const auto& [from, to] :
       {std::pair{"\"num_experts\": 8, ", ""}, {"k\": 2", "k\": 9"}, {"\"gelu\"", "\"swiglu\""}}) {
    const absl::Status status = Read(absl::StrReplaceAll(NomicExperts(""), {{from, to}})).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
}

}  // namespace
}  // namespace attendant
