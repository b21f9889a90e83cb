// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"

namespace attendant {
namespace {

using Dim = int64_t EncoderConfig::*;

struct EmbeddingEntry {
  const char* name;
  TensorView<const float, 2> EncoderWeights::*to;  // [rows, hidden]
  Dim rows;
};

struct LinearEntry {
  const char* name;
  LinearWeights EncoderLayerWeights::*to;  // [outputs, inputs] and [outputs]
  Dim outputs;
  Dim inputs;
};

struct NormEntry {
  const char* name;
  LayerNormWeights EncoderLayerWeights::*to;  // [hidden] twice
};

constexpr const char* kPrefixes[] = {"", "bert."};

constexpr EmbeddingEntry kEmbeddings[] = {
    {"embeddings.word_embeddings", &EncoderWeights::token_embedding, &EncoderConfig::vocab},
    {"embeddings.position_embeddings", &EncoderWeights::position_embedding,
     &EncoderConfig::max_positions},
    {"embeddings.token_type_embeddings", &EncoderWeights::segment_embedding,
     &EncoderConfig::segment_types},
};
constexpr const char* kEmbeddingNorm = "embeddings.LayerNorm";

// Below "encoder.layer.INDEX.".
constexpr LinearEntry kLayerLinears[] = {
    {"attention.self.query", &EncoderLayerWeights::query, &EncoderConfig::hidden,
     &EncoderConfig::hidden},
    {"attention.self.key", &EncoderLayerWeights::key, &EncoderConfig::hidden,
     &EncoderConfig::hidden},
    {"attention.self.value", &EncoderLayerWeights::value, &EncoderConfig::hidden,
     &EncoderConfig::hidden},
    {"attention.output.dense", &EncoderLayerWeights::attention_output, &EncoderConfig::hidden,
     &EncoderConfig::hidden},
    {"intermediate.dense", &EncoderLayerWeights::ffn_up, &EncoderConfig::ffn,
     &EncoderConfig::hidden},
    {"output.dense", &EncoderLayerWeights::ffn_down, &EncoderConfig::hidden, &EncoderConfig::ffn},
};
constexpr NormEntry kLayerNorms[] = {
    {"attention.output.LayerNorm", &EncoderLayerWeights::attention_norm},
    {"output.LayerNorm", &EncoderLayerWeights::ffn_norm},
};

// Fills weights from a store by the table above.
class Loader {
 public:
  Loader(const EncoderConfig& config, TensorStore& store) : config_(config), store_(store) {}

  absl::StatusOr<EncoderWeights> Load() {
    EncoderWeights weights;
    ATTENDANT_RETURN_IF_ERROR(FindPrefix());
    ATTENDANT_RETURN_IF_ERROR(LoadEmbeddings(weights));
    // Grown layer by layer: a config that lies about their number meets the first missing tensor.
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      weights.layers.emplace_back();
      ATTENDANT_RETURN_IF_ERROR(
          LoadLayer(absl::StrCat("encoder.layer.", layer, "."), weights.layers.back()));
    }
    return weights;
  }

 private:
  absl::Status FindPrefix() {
    const std::string anchor = absl::StrCat(kEmbeddings[0].name, ".weight");
    for (const char* prefix : kPrefixes) {
      prefix_ = prefix;
      if (store_.Find(prefix_ + anchor) != nullptr) return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("tensor `", anchor, "` is missing, with and without the prefix `bert.`"));
  }

  absl::Status LoadEmbeddings(EncoderWeights& weights) {
    for (const EmbeddingEntry& entry : kEmbeddings) {
      ATTENDANT_RETURN_IF_ERROR(LoadTensor<2>({absl::StrCat(entry.name, ".weight")},
                                              {config_.*entry.rows, config_.hidden},
                                              weights.*entry.to));
    }
    return LoadNorm(kEmbeddingNorm, weights.embedding_norm);
  }

  absl::Status LoadLayer(const std::string& path, EncoderLayerWeights& layer) {
    for (const LinearEntry& entry : kLayerLinears) {
      ATTENDANT_RETURN_IF_ERROR(LoadLinear(path, entry, layer.*entry.to));
    }
    for (const NormEntry& entry : kLayerNorms) {
      ATTENDANT_RETURN_IF_ERROR(LoadNorm(path + entry.name, layer.*entry.to));
    }
    return absl::OkStatus();
  }

  absl::Status LoadLinear(const std::string& path, const LinearEntry& entry,
                          LinearWeights& linear) {
    const int64_t outputs = config_.*entry.outputs;
    ATTENDANT_RETURN_IF_ERROR(LoadTensor<2>({absl::StrCat(path, entry.name, ".weight")},
                                            {outputs, config_.*entry.inputs}, linear.weight));
    return LoadTensor<1>({absl::StrCat(path, entry.name, ".bias")}, {outputs}, linear.bias);
  }

  absl::Status LoadNorm(const std::string& path, LayerNormWeights& norm) {
    ATTENDANT_RETURN_IF_ERROR(
        LoadTensor<1>({path + ".weight", path + ".gamma"}, {config_.hidden}, norm.gamma));
    return LoadTensor<1>({path + ".bias", path + ".beta"}, {config_.hidden}, norm.beta);
  }

  // `names` are one tensor's, today's first.
  template <int rank>
  absl::Status LoadTensor(std::initializer_list<std::string> names, std::array<int64_t, rank> dims,
                          TensorView<const float, rank>& to) {
    const StoredTensor* tensor = nullptr;
    for (const std::string& name : names) {
      if (tensor == nullptr) tensor = store_.Find(prefix_ + name);
    }
    if (tensor == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("tensor `", prefix_, *names.begin(),
                                                     "` is missing, expected shape [",
                                                     absl::StrJoin(dims, ", "), "]"));
    }
    if (!std::equal(dims.begin(), dims.end(), tensor->dims.begin(), tensor->dims.end())) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor `", tensor->name, "` has shape [", absl::StrJoin(tensor->dims, ", "),
                       "], the config makes it [", absl::StrJoin(dims, ", "), "]"));
    }
    ATTENDANT_ASSIGN_OR_RETURN(const float* values, store_.Floats(*tensor));
    to = TensorView<const float, rank>(values, dims);
    return absl::OkStatus();
  }

  const EncoderConfig& config_;
  TensorStore& store_;
  std::string prefix_;
};

}  // namespace

absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& directory) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, ReadJsonFile(directory + "/config.json"));
  return LoadCheckpoint(config, directory);
}

absl::StatusOr<Checkpoint> LoadCheckpoint(const JsonNode& json, const std::string& directory) {
  ATTENDANT_ASSIGN_OR_RETURN(const EncoderConfig config, ReadEncoderConfig(json));
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<TensorStore> store, TensorStore::Open(directory));
  absl::StatusOr<EncoderWeights> weights = Loader(config, *store).Load();
  if (!weights.ok()) {
    return absl::Status(weights.status().code(),
                        absl::StrCat(directory, ": ", weights.status().message()));
  }
  weights->storage = std::shared_ptr<const TensorStore>(std::move(store));
  return Checkpoint{config, *std::move(weights)};
}

}  // namespace attendant
