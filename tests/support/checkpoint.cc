// SPDX-License-Identifier: Apache-2.0
#include "tests/support/checkpoint.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/check.h"

namespace attendant {
namespace {

std::string LittleEndian64(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return bytes;
}

// Of mean 0 and variance 1; std::normal_distribution differs between libraries.
float RandomValue(Spread spread, std::mt19937& random) {
  if (spread == Spread::kUniform) {
    return (static_cast<float>(random() >> 8) * 0x1p-24f - 0.5f) * 3.4641016f;
  }
  int sum = 0;  // of 8 bytes: mean 1020, variance 43690
  for (int draw = 0; draw < 2; ++draw) {
    const auto bits = random();
    for (int shift = 0; shift < 32; shift += 8) sum += static_cast<int>(bits >> shift & 0xff);
  }
  return static_cast<float>(sum - 1020) * 4.7842007e-3f;
}

// Values with which activations stay healthy: layer norms near the identity, the rest scaled by
// fan-in.
std::vector<float> RandomValues(const std::string& name, const std::vector<int64_t>& dims,
                                Spread spread, std::mt19937& random) {
  int64_t elements = 1;
  for (int64_t dim : dims) elements *= dim;
  const bool gain = name.ends_with("LayerNorm.weight");
  const float fan_in = dims.size() == 2 ? static_cast<float>(dims[1]) : 25.0f;
  const float scale = name.starts_with("embeddings") && !gain ? 1.0f : 1.0f / std::sqrt(fan_in);
  std::vector<float> values(static_cast<size_t>(elements));
  for (float& value : values) {
    value = RandomValue(spread, random) * scale + (gain ? 1.0f : 0.0f);
  }
  return values;
}

// Names, shapes and the places of a checkpoint's tensors in EncoderWeights, in one order.
class Layout {
 public:
  Layout(const EncoderConfig& config, EncoderWeights& weights) : hidden_(config.hidden) {
    weights.layers.resize(static_cast<size_t>(config.layers));
    const int64_t width = config.input_width();
    Add("embeddings.word_embeddings.weight", {config.vocab, width}, weights.token_embedding);
    Add("embeddings.position_embeddings.weight", {config.max_positions, width},
        weights.position_embedding);
    Add("embeddings.token_type_embeddings.weight", {config.segment_types, width},
        weights.segment_embedding);
    Add("embeddings.LayerNorm.weight", width, weights.embedding_norm.gamma);
    Add("embeddings.LayerNorm.bias", width, weights.embedding_norm.beta);
    if (config.projects_embeddings()) {
      AddLinear("projection", hidden_, width, weights.embedding_projection);
    }
    for (size_t i = 0; i < weights.layers.size(); ++i) {
      AddLayer(absl::StrCat("encoder.layer.", i, "."), config, weights.layers[i]);
    }
    if (config.final_norm) AddNorm("encoder.LayerNorm", weights.final_norm);
    if (config.gated_ffn) AddGates(config.ffn, weights);
    for (EncoderLayerWeights& layer : weights.layers) {
      if (config.query_key_norm == QueryKeyNorm::kNone) break;
      AddQueryKeyNorm("query.LayerNorm", config, config.context_width(), layer.query_norm);
      AddQueryKeyNorm("key.LayerNorm", config, config.key_width(), layer.key_norm);
    }
    for (EncoderLayerWeights& layer : weights.layers) {
      if (!config.norms_attention_output()) break;
      AddNorm("attention.LayerNorm", layer.attention_output_norm);
      if (config.norms_outputs()) AddNorm("ffn.LayerNorm", layer.ffn_output_norm);
    }
    AddExperts(config, weights);
    if (config.score_bias == ScoreBias::kBuckets) {
      Add("embeddings.score_bias.weight", {config.bias_buckets, config.heads}, weights.score_bias);
    } else if (config.score_bias == ScoreBias::kDisentangled) {
      Add("embeddings.score_bias.weight", {config.bias_buckets, hidden_}, weights.score_bias);
    }
  }

  struct Entry {
    std::string name;
    std::vector<int64_t> dims;
    TensorView<const float, 1>* vector = nullptr;
    TensorView<const float, 2>* matrix = nullptr;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  void Add(const std::string& name, std::array<int64_t, 2> dims, TensorView<const float, 2>& to) {
    entries_.push_back({name, {dims[0], dims[1]}, nullptr, &to});
  }
  void Add(const std::string& name, int64_t dim, TensorView<const float, 1>& to) {
    entries_.push_back({name, {dim}, &to, nullptr});
  }
  void AddLinear(const std::string& name, int64_t outputs, int64_t inputs, LinearWeights& to) {
    Add(name + ".weight", {outputs, inputs}, to.weight);
    Add(name + ".bias", outputs, to.bias);
  }
  void AddNorm(const std::string& name, LayerNormWeights& to) {
    Add(name + ".weight", hidden_, to.gamma);
    Add(name + ".bias", hidden_, to.beta);
  }
  void AddQueryKeyNorm(const std::string& name, const EncoderConfig& config, int64_t width,
                       LayerNormWeights& to) {
    Add(name + ".weight", config.query_key_norm_size(width), to.gamma);
    if (config.query_key_norm == QueryKeyNorm::kWhole) Add(name + ".bias", width, to.beta);
  }
  // Behind all others, whose values they leave as they are.
  void AddGates(int64_t ffn, EncoderWeights& weights) {
    for (size_t i = 0; i < weights.layers.size(); ++i) {
      AddLinear(absl::StrCat("encoder.layer.", i, ".gate.dense"), ffn, hidden_,
                weights.layers[i].ffn_gate);
    }
  }
  // Scores far apart: rounding seldom sends a token to another expert.
  void AddExperts(const EncoderConfig& config, EncoderWeights& weights) {
    for (int64_t i = 0; i < config.layers; ++i) {
      if (!config.has_experts(i)) continue;
      EncoderLayerWeights& layer = weights.layers[static_cast<size_t>(i)];
      Add("embeddings.router.weight", {config.experts, hidden_}, layer.router);
      Add("experts.bias", hidden_, layer.experts_bias);
      layer.experts.resize(static_cast<size_t>(config.experts));
      for (ExpertWeights& expert : layer.experts) {
        Add("expert.up", {config.ffn, hidden_}, expert.up);
        Add("expert.down", {config.ffn, hidden_}, expert.down);
      }
    }
  }
  void AddLayer(const std::string& path, const EncoderConfig& config, EncoderLayerWeights& layer) {
    const int64_t ffn = config.ffn, width = config.context_width();
    AddLinear(path + "attention.self.query", width, hidden_, layer.query);
    AddLinear(path + "attention.self.key", config.key_width(), hidden_, layer.key);
    AddLinear(path + "attention.self.value", config.key_width(), hidden_, layer.value);
    AddLinear(path + "attention.output.dense", hidden_, width, layer.attention_output);
    AddNorm(path + "attention.output.LayerNorm", layer.attention_norm);
    AddLinear(path + "intermediate.dense", ffn, hidden_, layer.ffn_up);
    AddLinear(path + "output.dense", hidden_, ffn, layer.ffn_down);
    AddNorm(path + "output.LayerNorm", layer.ffn_norm);
  }

  int64_t hidden_;
  std::vector<Entry> entries_;
};

const char* ActivationField(Activation activation) {
  switch (activation) {
    case Activation::kGeluErf:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu_new";
    case Activation::kRelu:
      return "relu";
    case Activation::kSilu:
      return "silu";
  }
  return "";
}

}  // namespace

TestTensor FloatTensor(const std::string& name, const std::vector<int64_t>& dims,
                       const std::vector<float>& values) {
  TestTensor tensor{name, "F32", dims, std::string(values.size() * sizeof(float), '\0')};
  if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

std::string SafetensorsBytes(const std::vector<TestTensor>& tensors) {
  std::vector<std::string> entries;
  std::string data;
  for (const TestTensor& tensor : tensors) {
    entries.push_back(absl::StrCat("\"", tensor.name, "\":{\"dtype\":\"", tensor.dtype,
                                   "\",\"shape\":[", absl::StrJoin(tensor.dims, ","),
                                   "],\"data_offsets\":[", data.size(), ",",
                                   data.size() + tensor.data.size(), "]}"));
    data += tensor.data;
  }
  std::string header = absl::StrCat("{", absl::StrJoin(entries, ","), "}");
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return SafetensorsBytes(header, data);
}

std::string SafetensorsBytes(const std::string& header, const std::string& data) {
  return LittleEndian64(header.size()) + header + data;
}

std::vector<TestTensor> RandomTensors(const EncoderConfig& config, uint32_t seed) {
  EncoderWeights unused;
  std::mt19937 random(seed);
  std::vector<TestTensor> tensors;
  const Layout layout(config, unused);
  for (const Layout::Entry& entry : layout.entries()) {
    tensors.push_back(FloatTensor(
        entry.name, entry.dims, RandomValues(entry.name, entry.dims, Spread::kUniform, random)));
  }
  return tensors;
}

EncoderWeights RandomWeights(const EncoderConfig& config, uint32_t seed, Spread spread) {
  EncoderWeights weights;
  std::mt19937 random(seed);
  auto storage = std::make_shared<std::deque<std::vector<float>>>();
  const Layout layout(config, weights);
  for (const Layout::Entry& entry : layout.entries()) {
    storage->push_back(RandomValues(entry.name, entry.dims, spread, random));
    const float* values = storage->back().data();
    if (entry.vector != nullptr) *entry.vector = {values, {entry.dims[0]}};
    if (entry.matrix != nullptr) *entry.matrix = {values, {entry.dims[0], entry.dims[1]}};
  }
  weights.storage = std::move(storage);
  return weights;
}

std::string ConfigJson(const EncoderConfig& config) {
  return absl::StrCat("{\"model_type\": \"bert\", \"num_hidden_layers\": ", config.layers,
                      ", \"num_attention_heads\": ", config.heads,
                      ", \"hidden_size\": ", config.hidden, ", \"intermediate_size\": ", config.ffn,
                      ", \"vocab_size\": ", config.vocab,
                      ", \"max_position_embeddings\": ", config.max_positions,
                      ", \"type_vocab_size\": ", config.segment_types,
                      ", \"layer_norm_eps\": ", config.layer_norm_epsilon, ", \"hidden_act\": \"",
                      ActivationField(config.activation), "\"}");
}

void WriteFile(const std::string& path, const std::string& bytes) {
  // A new file: shortening the old one would cut it from under whoever has it mapped, and ext4
  // writes such a file to the disk at once (4 ms, thousands of times in the mutation test).
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  ATTENDANT_CHECK(file.good());
}

void WriteCheckpoint(const std::string& directory, const EncoderConfig& config, uint32_t seed) {
  WriteFile(directory + "/config.json", ConfigJson(config));
  WriteFile(directory + "/model.safetensors", SafetensorsBytes(RandomTensors(config, seed)));
}

TempDirectory::TempDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "attendant-test-XXXXXX").string();
  ATTENDANT_CHECK(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace attendant
