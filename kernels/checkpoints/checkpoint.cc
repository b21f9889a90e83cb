// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/checkpoint.h"

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
#include "kernels/checkpoints/classifier_head.h"
#include "kernels/checkpoints/families/family.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"

namespace attendant {
namespace {

using Dim = int64_t EncoderConfig::*;
using Name = absl::string_view TensorNames::*;

struct LinearEntry {
  Name name;
  LinearWeights EncoderLayerWeights::*to;  // [outputs, inputs] and [outputs]
  Dim outputs;
  Dim inputs;
};

struct NormEntry {
  Name name;
  LayerNormWeights EncoderLayerWeights::*to;  // [hidden] twice
};

constexpr LinearEntry kLayerLinears[] = {
    {&TensorNames::query, &EncoderLayerWeights::query, &EncoderConfig::hidden,
     &EncoderConfig::hidden},
    {&TensorNames::key, &EncoderLayerWeights::key, &EncoderConfig::hidden, &EncoderConfig::hidden},
    {&TensorNames::value, &EncoderLayerWeights::value, &EncoderConfig::hidden,
     &EncoderConfig::hidden},
    {&TensorNames::attention_output, &EncoderLayerWeights::attention_output, &EncoderConfig::hidden,
     &EncoderConfig::hidden},
    {&TensorNames::ffn_up, &EncoderLayerWeights::ffn_up, &EncoderConfig::ffn,
     &EncoderConfig::hidden},
    {&TensorNames::ffn_down, &EncoderLayerWeights::ffn_down, &EncoderConfig::hidden,
     &EncoderConfig::ffn},
};
constexpr NormEntry kLayerNorms[] = {
    {&TensorNames::attention_norm, &EncoderLayerWeights::attention_norm},
    {&TensorNames::ffn_norm, &EncoderLayerWeights::ffn_norm},
};

// What the weights point into.
struct Storage {
  std::unique_ptr<TensorStore> store;
  std::vector<float> no_segments;  // [1, hidden], zeros, for a family that has none
};

// Fills weights from a store, by a family's names.
class Loader {
 public:
  Loader(const FamilyConfig& family_config, const TensorNames& names, Storage& storage)
      : config_(family_config.encoder),
        first_position_(family_config.first_position),
        names_(names),
        store_(*storage.store),
        no_segments_(storage.no_segments) {}

  absl::StatusOr<EncoderWeights> Load() {
    EncoderWeights weights;
    ATTENDANT_RETURN_IF_ERROR(FindPrefix());
    ATTENDANT_RETURN_IF_ERROR(LoadEmbeddings(weights));
    // Grown layer by layer: a config that lies about their number meets the first missing tensor.
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      weights.layers.emplace_back();
      ATTENDANT_RETURN_IF_ERROR(
          LoadLayer(absl::StrCat(names_.layers, ".", layer, "."), weights.layers.back()));
    }
    return weights;
  }

 private:
  absl::Status FindPrefix() {
    const std::string anchor = absl::StrCat(names_.token_embedding, ".weight");
    for (const absl::string_view prefix : {absl::string_view(), names_.prefix}) {
      prefix_ = std::string(prefix);
      if (store_.Find(prefix_ + anchor) != nullptr) return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor `", anchor, "` is missing, with and without the prefix `", names_.prefix, "`"));
  }

  absl::Status LoadEmbeddings(EncoderWeights& weights) {
    ATTENDANT_RETURN_IF_ERROR(
        LoadEmbedding(names_.token_embedding, config_.vocab, weights.token_embedding));
    ATTENDANT_RETURN_IF_ERROR(LoadPositions(weights));
    ATTENDANT_RETURN_IF_ERROR(LoadSegments(weights));
    return LoadNorm(std::string(names_.embedding_norm), weights.embedding_norm);
  }

  absl::Status LoadEmbedding(absl::string_view name, int64_t rows, TensorView<const float, 2>& to) {
    return LoadTensor<2>({absl::StrCat(name, ".weight")}, {rows, config_.hidden}, to);
  }

  absl::Status LoadPositions(EncoderWeights& weights) {
    TensorView<const float, 2> stored;
    ATTENDANT_RETURN_IF_ERROR(
        LoadEmbedding(names_.position_embedding, first_position_ + config_.max_positions, stored));
    weights.position_embedding = {stored.row(first_position_),
                                  {config_.max_positions, config_.hidden}};
    return absl::OkStatus();
  }

  absl::Status LoadSegments(EncoderWeights& weights) {
    if (!names_.segment_embedding.empty()) {
      return LoadEmbedding(names_.segment_embedding, config_.segment_types,
                           weights.segment_embedding);
    }
    no_segments_.resize(static_cast<size_t>(config_.hidden));
    weights.segment_embedding = {no_segments_.data(), {1, config_.hidden}};
    return absl::OkStatus();
  }

  absl::Status LoadLayer(const std::string& path, EncoderLayerWeights& layer) {
    for (const LinearEntry& entry : kLayerLinears) {
      ATTENDANT_RETURN_IF_ERROR(LoadLinear(path, entry, layer.*entry.to));
    }
    for (const NormEntry& entry : kLayerNorms) {
      ATTENDANT_RETURN_IF_ERROR(LoadNorm(absl::StrCat(path, names_.*entry.name), layer.*entry.to));
    }
    return absl::OkStatus();
  }

  absl::Status LoadLinear(const std::string& path, const LinearEntry& entry,
                          LinearWeights& linear) {
    const int64_t outputs = config_.*entry.outputs;
    const std::string name = absl::StrCat(path, names_.*entry.name);
    ATTENDANT_RETURN_IF_ERROR(
        LoadTensor<2>({name + ".weight"}, {outputs, config_.*entry.inputs}, linear.weight));
    return LoadTensor<1>({name + ".bias"}, {outputs}, linear.bias);
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
  const int64_t first_position_;
  const TensorNames& names_;
  TensorStore& store_;
  std::vector<float>& no_segments_;
  std::string prefix_;
};

}  // namespace

absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& directory) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, ReadJsonFile(directory + "/config.json"));
  return LoadCheckpoint(config, directory);
}

absl::StatusOr<EncoderConfig> ReadEncoderConfig(const std::string& directory) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode json, ReadJsonFile(directory + "/config.json"));
  ATTENDANT_ASSIGN_OR_RETURN(const Family* family, FindFamily(json));
  ATTENDANT_ASSIGN_OR_RETURN(const FamilyConfig config, family->read_config(json));
  return config.encoder;
}

absl::StatusOr<Checkpoint> LoadCheckpoint(const JsonNode& json, const std::string& directory) {
  ATTENDANT_ASSIGN_OR_RETURN(const Family* family, FindFamily(json));
  ATTENDANT_ASSIGN_OR_RETURN(const FamilyConfig config, family->read_config(json));
  const auto storage = std::make_shared<Storage>();
  ATTENDANT_ASSIGN_OR_RETURN(storage->store, TensorStore::Open(directory));
  absl::StatusOr<EncoderWeights> weights = Loader(config, family->names, *storage).Load();
  if (!weights.ok()) {
    return absl::Status(weights.status().code(),
                        absl::StrCat(directory, ": ", weights.status().message()));
  }
  weights->storage = storage;
  Checkpoint checkpoint{.config = config.encoder, .weights = *std::move(weights)};
  ATTENDANT_ASSIGN_OR_RETURN(
      checkpoint.classifier,
      ReadSequenceClassifier(json, config.encoder.hidden, directory, *storage->store));
  return checkpoint;
}

}  // namespace attendant
