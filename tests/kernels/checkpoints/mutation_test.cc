// SPDX-License-Identifier: Apache-2.0
// Damaged checkpoints: whatever the damage, loading gives an error or weights that can be read. The
// sanitizers see the rest.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "kernels/checkpoints/attention_module.h"
#include "kernels/checkpoints/checkpoint.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

constexpr EncoderConfig kConfig = {.layers = 1,
                                   .heads = 2,
                                   .hidden = 2,
                                   .ffn = 3,
                                   .vocab = 4,
                                   .max_positions = 2,
                                   .segment_types = 1,
                                   .layer_norm_epsilon = 1e-12f,
                                   .activation = Activation::kGeluErf};

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  // One to three small damages.
  std::string Damage(std::string bytes) {
    for (uint32_t left = 1 + Below(3); left > 0 && !bytes.empty(); --left) DamageOnce(bytes);
    return bytes;
  }

 private:
  uint32_t Below(size_t limit) { return static_cast<uint32_t>(random_() % limit); }

  void DamageOnce(std::string& bytes) {
    const size_t at = Below(bytes.size());
    const size_t count = 1 + Below(8);
    switch (Below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(8)));
        break;
      case 1:
        bytes[at] = "{}[]\",:-.0129eE\\\0\x7f\xff"[Below(20)];
        break;
      case 2:
        bytes.erase(at, count);
        break;
      case 3:
        bytes.insert(at, bytes.substr(Below(bytes.size()), count));
        break;
      case 4:
        bytes.insert(at, kNumbers[Below(std::size(kNumbers))]);
        break;
      default:
        bytes.resize(at);
        break;
    }
  }

  static constexpr const char* kNumbers[] = {
      "0", "-1", "4294967296", "4611686018427387904", "9223372036854775807", "1e18", "null", "[]"};
  std::mt19937 random_;
};

template <int rank>
double Sum(const TensorView<const float, rank>& view) {
  double sum = 0;
  for (int64_t i = 0; i < view.size(); ++i) sum += view.data()[i];
  return sum;
}

double Sum(const LinearWeights& linear) { return Sum(linear.weight) + Sum(linear.bias); }
double Sum(const LayerNormWeights& norm) { return Sum(norm.gamma) + Sum(norm.beta); }

double SumOfAll(const EncoderWeights& weights) {
  double sum = Sum(weights.token_embedding) + Sum(weights.position_embedding) +
               Sum(weights.segment_embedding) + Sum(weights.embedding_norm);
  for (const EncoderLayerWeights& layer : weights.layers) {
    sum += Sum(layer.query) + Sum(layer.key) + Sum(layer.value) + Sum(layer.attention_output) +
           Sum(layer.attention_norm) + Sum(layer.ffn_up) + Sum(layer.ffn_down) +
           Sum(layer.ffn_norm);
  }
  return sum;
}

class MutationTest : public ::testing::Test {
 protected:
  MutationTest() { WriteCheckpoint(directory_.path(), kConfig, 1); }

  bool LoadsAndReads() {
    const absl::StatusOr<Checkpoint> checkpoint = LoadCheckpoint(directory_.path());
    if (checkpoint.ok()) {
      EXPECT_TRUE(Validate(checkpoint->config).ok());
      EXPECT_TRUE(std::isfinite(SumOfAll(checkpoint->weights)));
    } else {
      EXPECT_FALSE(checkpoint.status().message().empty());
      EXPECT_LT(checkpoint.status().message().size(), 2000u);
    }
    return checkpoint.ok();
  }

  TempDirectory directory_;
};

TEST_F(MutationTest, Weights) {
  const std::string whole = SafetensorsBytes(RandomTensors(kConfig, 1));
  Mutator mutator(1);
  int loaded = 0;
  for (int round = 0; round < 6000; ++round) {
    WriteFile(directory_ / "model.safetensors", mutator.Damage(whole));
    loaded += LoadsAndReads();
  }
  // Damage to a value alone is no damage to the file: both outcomes must have been seen.
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, 3000);
}

TEST_F(MutationTest, EveryHeaderByte) {
  const std::string whole = SafetensorsBytes(RandomTensors(kConfig, 1));
  const size_t header_end = whole.find("}}") + 2;
  for (size_t at = 0; at < header_end; ++at) {
    for (char byte : {'\0', '9', '}', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = byte;
      WriteFile(directory_ / "model.safetensors", damaged);
      LoadsAndReads();
    }
  }
}

TEST_F(MutationTest, Config) {
  const std::string whole = ConfigJson(kConfig);
  Mutator mutator(2);
  for (int round = 0; round < 3000; ++round) {
    WriteFile(directory_ / "config.json", mutator.Damage(whole));
    LoadsAndReads();
  }
}

TEST_F(MutationTest, ShardIndex) {
  const std::string weights = SafetensorsBytes(RandomTensors(kConfig, 1));
  std::string index;
  for (const TestTensor& tensor : RandomTensors(kConfig, 1)) {
    index += (index.empty() ? "{\"weight_map\": {\"" : ", \"") + tensor.name + "\": \"shard\"";
  }
  index += "}}";
  std::remove((directory_ / "model.safetensors").c_str());
  WriteFile(directory_ / "shard", weights);
  WriteFile(directory_ / "model.safetensors.index.json", index);
  EXPECT_TRUE(LoadsAndReads());
  Mutator mutator(3);
  for (int round = 0; round < 2000; ++round) {
    WriteFile(directory_ / "model.safetensors.index.json", mutator.Damage(index));
    LoadsAndReads();
  }
}

// An attention module: an encoder of one layer, hidden 4, ffn 3.
std::vector<TestTensor> ModuleTensors() {
  std::vector<TestTensor> tensors;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& dims) {
    const int64_t count = dims.size() == 2 ? dims[0] * dims[1] : dims[0];
    tensors.push_back(FloatTensor("layers.0." + name, dims,
                                  std::vector<float>(static_cast<size_t>(count), 0.5f)));
  };
  add("self_attn.in_proj_weight", {12, 4});
  add("self_attn.in_proj_bias", {12});
  add("self_attn.out_proj.weight", {4, 4});
  add("self_attn.out_proj.bias", {4});
  add("linear1.weight", {3, 4});
  add("linear1.bias", {3});
  add("linear2.weight", {4, 3});
  add("linear2.bias", {4});
  for (const char* norm : {"norm1", "norm2"}) {
    add(std::string(norm) + ".weight", {4});
    add(std::string(norm) + ".bias", {4});
  }
  return tensors;
}

double SumOfAll(const ModuleWeights& weights) {
  double sum = 0;
  const auto multi_head = [&](const MultiHeadWeights& attention) {
    sum += Sum(attention.query) + Sum(attention.key) + Sum(attention.value) +
           Sum(attention.attention_output);
  };
  multi_head(weights.attention);
  for (const EncoderLayerWeights& layer : weights.layers) {
    multi_head(layer);
    sum +=
        Sum(layer.attention_norm) + Sum(layer.ffn_up) + Sum(layer.ffn_down) + Sum(layer.ffn_norm);
  }
  return sum + Sum(weights.final_norm);
}

TEST(ModuleMutationTest, ConfigAndWeights) {
  const std::string config =
      R"({"type": "TransformerEncoder", "nhead": 2, "num_layers": 1, "layer_norm_eps": 1e-5,)"
      R"( "norm_first": true, "activation": "gelu", "d_model": 4, "dim_feedforward": 3})";
  const std::string weights = SafetensorsBytes(ModuleTensors());
  const TempDirectory directory;
  Mutator mutator(4);
  int loaded = 0;
  for (int round = 0; round < 6000; ++round) {
    const bool damage_config = round % 2 == 1;
    WriteFile(directory / "config.json", damage_config ? mutator.Damage(config) : config);
    WriteFile(directory / "model.safetensors",
              round == 0 || damage_config ? weights : mutator.Damage(weights));
    const auto module = LoadAttentionModule(directory.path());
    ASSERT_TRUE(module.ok() || round > 0) << module.status();
    loaded += module.ok();
    if (!module.ok()) {
      EXPECT_FALSE(module.status().message().empty());
      EXPECT_LT(module.status().message().size(), 2000u);
      continue;
    }
    EXPECT_TRUE(ValidateWeights(module->config, module->weights).ok());
    EXPECT_TRUE(std::isfinite(SumOfAll(module->weights)));
  }
  EXPECT_GT(loaded, 1);
  EXPECT_LT(loaded, 4500);
}

}  // namespace
}  // namespace attendant
