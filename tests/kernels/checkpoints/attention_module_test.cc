// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/attention_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::HasSubstr;

struct Folder {
  std::string config;
  std::vector<TestTensor> tensors;
};

TestTensor Zeros(const std::string& name, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return FloatTensor(name, dims, std::vector<float>(static_cast<size_t>(count)));
}

void AddMultiHead(const std::string& path, Folder& folder) {
  folder.tensors.push_back(Zeros(path + "in_proj_bias", {18}));
  folder.tensors.push_back(Zeros(path + "in_proj_weight", {18, 6}));
  folder.tensors.push_back(Zeros(path + "out_proj.bias", {6}));
  folder.tensors.push_back(Zeros(path + "out_proj.weight", {6, 6}));
}

Folder MultiHeadFolder() {
  Folder folder{.config = R"({"type": "MultiheadAttention", "num_heads": 2, "embed_dim": 6})",
                .tensors = {}};
  AddMultiHead("", folder);
  return folder;
}

Folder EncoderFolder() {
  Folder folder{.config = R"({"type": "TransformerEncoder", "nhead": 3, "activation": "gelu",)"
                          R"( "norm_first": true, "layer_norm_eps": 1e-6, "num_layers": 2})",
                .tensors = {}};
  for (const std::string path : {"layers.0.", "layers.1."}) {
    AddMultiHead(path + "self_attn.", folder);
    folder.tensors.push_back(Zeros(path + "linear1.weight", {10, 6}));
    folder.tensors.push_back(Zeros(path + "linear1.bias", {10}));
    folder.tensors.push_back(Zeros(path + "linear2.weight", {6, 10}));
    folder.tensors.push_back(Zeros(path + "linear2.bias", {6}));
    for (const char* norm : {"norm1", "norm2"}) {
      folder.tensors.push_back(Zeros(absl::StrCat(path, norm, ".weight"), {6}));
      folder.tensors.push_back(Zeros(absl::StrCat(path, norm, ".bias"), {6}));
    }
  }
  folder.tensors.push_back(Zeros("norm.weight", {6}));
  folder.tensors.push_back(Zeros("norm.bias", {6}));
  return folder;
}

absl::StatusOr<ModuleCheckpoint> Load(const Folder& folder) {
  const TempDirectory directory;
  WriteFile(directory / "config.json", folder.config);
  WriteFile(directory / "model.safetensors", SafetensorsBytes(folder.tensors));
  return LoadAttentionModule(directory.path());
}

void ExpectRefused(const Folder& folder, absl::StatusCode code, const std::string& words) {
  const auto loaded = Load(folder);
  EXPECT_EQ(loaded.status().code(), code) << loaded.status();
  EXPECT_THAT(loaded.status().message(), HasSubstr(words));
}

TestTensor& Tensor(Folder& folder, const std::string& name) {
  for (TestTensor& tensor : folder.tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return folder.tensors.front();
}

void Remove(Folder& folder, const std::string& name) {
  std::erase_if(folder.tensors, [&](const TestTensor& tensor) { return tensor.name == name; });
}

TEST(AttentionModuleTest, TakesDimensionsFromTheTensors) {
  const auto multi_head = Load(MultiHeadFolder());
  ASSERT_TRUE(multi_head.ok()) << multi_head.status();
  EXPECT_EQ(multi_head->config.type, ModuleType::kMultiHead);
  EXPECT_EQ(multi_head->config.hidden, 6);
  EXPECT_EQ(multi_head->config.heads, 2);
  const auto encoder = Load(EncoderFolder());
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  EXPECT_EQ(encoder->config.type, ModuleType::kTransformerEncoder);
  EXPECT_EQ(encoder->config.layers, 2);
  EXPECT_EQ(encoder->config.ffn, 10);
  EXPECT_TRUE(encoder->config.final_norm);
  EXPECT_TRUE(encoder->config.norm_first);
  EXPECT_EQ(encoder->config.activation, Activation::kGeluErf);
  EXPECT_EQ(encoder->config.layer_norm_epsilon, 1e-6f);
}

TEST(AttentionModuleTest, TheFinalNormHasItsOwnEpsilon) {
  const auto encoder = Load(EncoderFolder());
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  EXPECT_EQ(encoder->config.final_norm_epsilon, 1e-5f);
  Folder folder = EncoderFolder();
  folder.config = absl::StrReplaceAll(folder.config, {{"1e-6", "1e-6, \"final_norm_eps\": 0.25"}});
  const auto given = Load(folder);
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->config.final_norm_epsilon, 0.25f);
  EXPECT_EQ(given->config.layer_norm_epsilon, 1e-6f);
}

TEST(AttentionModuleTest, HasPyTorchsDefaults) {
  Folder folder = EncoderFolder();
  folder.config = R"({"type": "TransformerEncoder", "nhead": 2, "dropout": 0.1})";
  Remove(folder, "norm.weight");
  const auto encoder = Load(folder);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  EXPECT_FALSE(encoder->config.norm_first);
  EXPECT_FALSE(encoder->config.final_norm);
  EXPECT_EQ(encoder->config.activation, Activation::kRelu);
  EXPECT_EQ(encoder->config.layer_norm_epsilon, 1e-5f);
}

TEST(AttentionModuleTest, RefusesConfigsThatLie) {
  const auto with = [](const char* from, const char* to) {
    Folder folder = EncoderFolder();
    folder.config = absl::StrReplaceAll(folder.config, {{from, to}});
    return folder;
  };
  const auto kBad = absl::StatusCode::kInvalidArgument;
  const auto kUnknown = absl::StatusCode::kUnimplemented;
  ExpectRefused(with("TransformerEncoder", "Transformer"), kUnknown, "`type` is `Transformer`");
  ExpectRefused(with("gelu", "silu"), kUnknown, "`activation` is `silu`");
  ExpectRefused(with("\"num_layers\": 2", "\"num_layers\": 3"), kBad,
                "`num_layers` is 3, the tensors make it 2");
  ExpectRefused(with("\"num_layers\": 2", "\"d_model\": 12"), kBad,
                "`d_model` is 12, the tensors make it 6");
  ExpectRefused(with("\"num_layers\": 2", "\"dim_feedforward\": 9"), kBad,
                "`dim_feedforward` is 9, the tensors make it 10");
  ExpectRefused(with("\"nhead\": 3", "\"nhead\": 4"), kBad, "multiple of heads, 4");
  ExpectRefused(with("\"nhead\": 3", "\"nhead\": -1"), kBad, "heads is -1");
  ExpectRefused(with("\"nhead\": 3,", ""), kBad, "nhead");
  ExpectRefused(with("1e-6", "2"), kBad, "`layer_norm_eps` is 2");
  ExpectRefused(with("1e-6", "1e-6, \"final_norm_eps\": 0"), kBad, "`final_norm_eps` is 0");
  ExpectRefused(with("1e-6", "1e-6, \"bias\": false"), kBad, "`bias` is false");
  Folder multi_head = MultiHeadFolder();
  multi_head.config = R"({"type": "MultiheadAttention", "num_heads": 2, "add_zero_attn": true})";
  ExpectRefused(multi_head, kUnknown, "`add_zero_attn` is true");
  multi_head.config = R"({"type": "MultiheadAttention", "num_heads": 2, "kdim": 5})";
  ExpectRefused(multi_head, kBad, "`kdim` is 5, the tensors make it 6");
}

TEST(AttentionModuleTest, RefusesTensorsThatDoNotFit) {
  const auto kBad = absl::StatusCode::kInvalidArgument;
  struct Damage {
    const char* words;
    std::function<void(Folder&)> apply;
  };
  for (const Damage& damage : std::initializer_list<Damage>{
           {"`layers.1.linear2.weight` is missing",
            [](Folder& f) { Remove(f, "layers.1.linear2.weight"); }},
           {"layer 1.ffn_up.weight has shape [9, 6]",
            [](Folder& f) {
              Tensor(f, "layers.1.linear1.weight") = Zeros("layers.1.linear1.weight", {9, 6});
            }},
           {"three times as many rows as columns",
            [](Folder& f) {
              Tensor(f, "layers.0.self_attn.in_proj_weight") =
                  Zeros("layers.0.self_attn.in_proj_weight", {18, 5});
            }},
           {"expected 3 * 6",
            [](Folder& f) {
              Tensor(f, "layers.0.self_attn.in_proj_bias") =
                  Zeros("layers.0.self_attn.in_proj_bias", {17});
            }},
           {"expected 1 dimensions",
            [](Folder& f) {
              Tensor(f, "norm.weight") = Zeros("norm.weight", {6, 1});
            }},
           {"final_norm.beta has shape [5]",
            [](Folder& f) { Tensor(f, "norm.bias") = Zeros("norm.bias", {5}); }},
       }) {
    Folder folder = EncoderFolder();
    damage.apply(folder);
    ExpectRefused(folder, kBad, damage.words);
  }
  Folder folder = MultiHeadFolder();
  folder.tensors.push_back(Zeros("bias_k", {1, 1, 6}));
  ExpectRefused(folder, absl::StatusCode::kUnimplemented, "add_bias_kv");
}

TEST(AttentionModuleTest, NeedsItsFiles) {
  const TempDirectory directory;
  EXPECT_EQ(LoadAttentionModule(directory.path()).status().code(), absl::StatusCode::kNotFound);
  WriteFile(directory / "config.json", MultiHeadFolder().config);
  EXPECT_EQ(LoadAttentionModule(directory.path()).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace attendant
