// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/adapters.h"
#include "kernels/checkpoints/classifier_head.h"
#include "kernels/checkpoints/colbert_head.h"
#include "kernels/checkpoints/families/family.h"
#include "kernels/checkpoints/m3_heads.h"
#include "kernels/checkpoints/stored_tensors.h"
#include "kernels/checkpoints/token_heads.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"

namespace attendant {
namespace {

// The memory that the weights point into.
struct Storage {
  std::unique_ptr<TensorStore> store;
  std::deque<std::vector<float>> made;  // tensors that are not stored as they are computed with
};

// Fills a checkpoint's encoder from a store, by a family's names.
class Loader {
 public:
  Loader(const FamilyConfig& family_config, const TensorNames& names, Storage& storage)
      : family_config_(family_config),
        config_(family_config.encoder),
        names_(names),
        tensors_(family_config, *storage.store, storage.made) {}

  absl::Status Load(Checkpoint& checkpoint) {
    EncoderWeights& weights = checkpoint.weights;
    checkpoint.config = config_;
    ATTENDANT_RETURN_IF_ERROR(FindPrefix());
    ATTENDANT_RETURN_IF_ERROR(LoadEmbeddings(weights));
    // Grown layer by layer: a config that lies about their number meets the first missing tensor.
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      const int64_t stored = StoredLayer(layer);
      if (layer > 0 && stored == StoredLayer(layer - 1)) {
        weights.layers.push_back(EncoderLayerWeights(weights.layers.back()));
        continue;
      }
      EncoderLayerWeights& to = weights.layers.emplace_back();
      const std::string path = absl::StrCat(names_.layers, ".", stored, ".");
      ATTENDANT_RETURN_IF_ERROR(LoadLayer(path, layer > 0 || config_.first_attention_norm, to));
      ATTENDANT_RETURN_IF_ERROR(config_.has_experts(layer) ? LoadExperts(path, to)
                                                           : LoadFfn(path, to));
    }
    ATTENDANT_RETURN_IF_ERROR(LoadRest(weights));
    return LoadRotaryRates(checkpoint.config);
  }

 private:
  using Parts = StoredTensors::Parts;

  // In the arithmetic of transformers.
  int64_t StoredLayer(int64_t layer) const {
    if (family_config_.layer_groups == 0) return layer;
    const double layers_of_each =
        static_cast<double>(config_.layers) / static_cast<double>(family_config_.layer_groups);
    return static_cast<int64_t>(static_cast<double>(layer) / layers_of_each);
  }

  absl::Status FindPrefix() {
    for (const absl::string_view prefix :
         {absl::string_view(), names_.prefix, names_.task_prefix}) {
      tensors_.SetPrefix(prefix);
      for (const absl::string_view table : {names_.own_token_embedding, names_.token_embedding}) {
        token_embedding_ = table;
        if (!table.empty() && tensors_.Has(absl::StrCat(table, ".weight"))) return absl::OkStatus();
      }
    }
    return absl::InvalidArgumentError(absl::StrCat("tensor `", names_.token_embedding,
                                                   ".weight` is missing, with and without the "
                                                   "prefix `",
                                                   names_.prefix, "`"));
  }

  absl::Status LoadEmbeddings(EncoderWeights& weights) {
    const int64_t width = config_.input_width();
    ATTENDANT_RETURN_IF_ERROR(
        tensors_.LoadTable(token_embedding_, {config_.vocab, width}, weights.token_embedding));
    if (config_.positions == Positions::kLearned) ATTENDANT_RETURN_IF_ERROR(LoadPositions(weights));
    ATTENDANT_RETURN_IF_ERROR(LoadSegments(weights));
    if (config_.projects_embeddings()) {
      ATTENDANT_RETURN_IF_ERROR(tensors_.LoadLinear(std::string(names_.embedding_projection),
                                                    {&weights.embedding_projection}, config_.hidden,
                                                    width,
                                                    /*has_bias=*/true));
    }
    if (!config_.embedding_norm) return absl::OkStatus();
    return tensors_.LoadNorm(std::string(names_.embedding_norm), width, weights.embedding_norm);
  }

  absl::Status LoadPositions(EncoderWeights& weights) {
    const int64_t first = family_config_.first_position;
    TensorView<const float, 2> stored;
    ATTENDANT_RETURN_IF_ERROR(tensors_.LoadTable(
        names_.position_embedding, {first + config_.max_positions, config_.input_width()}, stored));
    weights.position_embedding = {stored.row(first), {config_.max_positions, stored.dim(1)}};
    return absl::OkStatus();
  }

  absl::Status LoadSegments(EncoderWeights& weights) {
    if (!names_.segment_embedding.empty() && family_config_.segments) {
      return tensors_.LoadTable(names_.segment_embedding,
                                {config_.segment_types, config_.input_width()},
                                weights.segment_embedding);
    }
    weights.segment_embedding = {tensors_.MakeTensor(config_.input_width()),
                                 {1, config_.input_width()}};
    return absl::OkStatus();
  }

  // Loads the weights beside the layers: the last norm, and the biases that all layers share.
  absl::Status LoadRest(EncoderWeights& weights) {
    if (config_.final_norm) {
      ATTENDANT_RETURN_IF_ERROR(
          tensors_.LoadNorm(std::string(names_.final_norm), config_.hidden, weights.final_norm));
    }
    if (config_.score_bias == ScoreBias::kBuckets) {
      return tensors_.LoadTable(names_.score_bias, {config_.bias_buckets, config_.heads},
                                weights.score_bias);
    }
    if (config_.score_bias != ScoreBias::kDisentangled) return absl::OkStatus();
    ATTENDANT_RETURN_IF_ERROR(tensors_.LoadTable(
        names_.score_bias, {config_.bias_buckets, config_.hidden}, weights.score_bias));
    return family_config_.score_bias_norm ? NormalizeScoreBias(weights.score_bias)
                                          : absl::OkStatus();
  }

  // Rates in the checkpoint take the place of those that the config gives.
  absl::Status LoadRotaryRates(EncoderConfig& config) {
    for (const absl::string_view name : names_.rotary_rates) {
      if (!tensors_.Has(name) || config.positions != Positions::kRotary) continue;
      TensorView<const float, 1> rates;
      ATTENDANT_RETURN_IF_ERROR(
          tensors_.LoadTensor<1>(std::string(name), {config.head_dim() / 2}, rates));
      config.rotary.rates.assign(rates.data(), rates.data() + rates.size());
      return Validate(config);
    }
    return absl::OkStatus();
  }

  absl::Status NormalizeScoreBias(TensorView<const float, 2>& table) {
    LayerNormWeights norm;
    ATTENDANT_RETURN_IF_ERROR(
        tensors_.LoadNorm(std::string(names_.score_bias_norm), config_.hidden, norm));
    float* made = tensors_.MakeTensor(table.size());
    for (int64_t row = 0; row < table.dim(0); ++row) {
      NormalizeRow(table.row(row), norm, made + row * config_.hidden);
    }
    table = {made, table.dims()};
    return absl::OkStatus();
  }

  void NormalizeRow(const float* row, const LayerNormWeights& norm, float* out) const {
    const auto count = static_cast<double>(config_.hidden);
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < config_.hidden; ++i) mean += row[i] / count;
    for (int64_t i = 0; i < config_.hidden; ++i) {
      variance += (row[i] - mean) * (row[i] - mean) / count;
    }
    const double scale = 1 / std::sqrt(variance + static_cast<double>(config_.layer_norm_epsilon));
    for (int64_t i = 0; i < config_.hidden; ++i) {
      out[i] =
          static_cast<float>((row[i] - mean) * scale * norm.gamma.data()[i] + BiasAt(norm.beta, i));
    }
  }

  absl::Status LoadLayer(const std::string& path, bool attention_norm, EncoderLayerWeights& layer) {
    const int64_t hidden = config_.hidden;
    ATTENDANT_RETURN_IF_ERROR(LoadAttention(path, layer));
    ATTENDANT_RETURN_IF_ERROR(tensors_.LoadLinear(
        absl::StrCat(path, names_.attention_output), {&layer.attention_output}, hidden,
        config_.context_width(), family_config_.biases.attention_output));
    if (attention_norm) {
      ATTENDANT_RETURN_IF_ERROR(tensors_.LoadNorm(absl::StrCat(path, names_.attention_norm), hidden,
                                                  layer.attention_norm));
    }
    if (config_.norms_attention_output()) {
      ATTENDANT_RETURN_IF_ERROR(tensors_.LoadNorm(absl::StrCat(path, names_.attention_output_norm),
                                                  hidden, layer.attention_output_norm));
    }
    if (config_.norms_outputs()) {
      ATTENDANT_RETURN_IF_ERROR(tensors_.LoadNorm(absl::StrCat(path, names_.ffn_output_norm),
                                                  hidden, layer.ffn_output_norm));
    }
    return tensors_.LoadNorm(absl::StrCat(path, names_.ffn_norm), hidden, layer.ffn_norm);
  }

  absl::Status LoadAttention(const std::string& path, EncoderLayerWeights& layer) {
    const auto load = [&](absl::string_view name, Parts parts, int64_t outputs) {
      return tensors_.LoadLinear(absl::StrCat(path, name), parts, outputs, config_.hidden,
                                 family_config_.biases.qkv);
    };
    const int64_t width = config_.context_width(), key_width = config_.key_width();
    if (family_config_.qkv_by_heads) return LoadQkvByHeads(absl::StrCat(path, names_.qkv), layer);
    if (!names_.qkv.empty()) {
      return load(names_.qkv, {&layer.query, &layer.key, &layer.value}, width);
    }
    ATTENDANT_RETURN_IF_ERROR(load(names_.query, {&layer.query}, width));
    ATTENDANT_RETURN_IF_ERROR(load(names_.key, {&layer.key}, key_width));
    ATTENDANT_RETURN_IF_ERROR(load(names_.value, {&layer.value}, key_width));
    if (config_.query_key_norm == QueryKeyNorm::kNone) return absl::OkStatus();
    ATTENDANT_RETURN_IF_ERROR(tensors_.LoadNorm(absl::StrCat(path, names_.query_norm),
                                                config_.query_key_norm_size(width),
                                                layer.query_norm));
    return tensors_.LoadNorm(absl::StrCat(path, names_.key_norm),
                             config_.query_key_norm_size(key_width), layer.key_norm);
  }

  // Queries and keys with the first values of all pairs before the second ones.
  absl::Status LoadQkvByHeads(const std::string& name, EncoderLayerWeights& layer) {
    const int64_t width = config_.context_width(), head_dim = config_.head_dim();
    const int64_t hidden = config_.hidden, pairs = head_dim / 2;
    TensorView<const float, 2> stored;
    ATTENDANT_RETURN_IF_ERROR(tensors_.LoadTable(name, {3 * width, hidden}, stored));
    ATTENDANT_RETURN_IF_ERROR(
        tensors_.LoadBias(name + ".bias", 3 * width, false, layer.query.bias));
    int64_t part = 0;
    for (LinearWeights* linear : {&layer.query, &layer.key, &layer.value}) {
      float* made = tensors_.MakeTensor(width * hidden);
      for (int64_t row = 0; row < width; ++row) {
        const int64_t of_head = row % head_dim, head = row / head_dim;
        const int64_t turned = of_head < pairs ? 2 * of_head : 2 * (of_head - pairs) + 1;
        const int64_t from = linear == &layer.value ? of_head : turned;
        std::copy_n(stored.row((3 * head + part) * head_dim + from), hidden, made + row * hidden);
      }
      linear->weight = {made, {width, hidden}};
      ++part;
    }
    return absl::OkStatus();
  }

  absl::Status LoadFfn(const std::string& path, EncoderLayerWeights& layer) {
    ATTENDANT_RETURN_IF_ERROR(LoadFfnUp(path, layer));
    return tensors_.LoadLinear(absl::StrCat(path, names_.ffn_down), {&layer.ffn_down},
                               config_.hidden, config_.ffn, family_config_.biases.ffn_down);
  }

  absl::Status LoadExperts(const std::string& path, EncoderLayerWeights& layer) {
    const std::array<int64_t, 2> dims = {config_.experts * config_.ffn, config_.hidden};
    TensorView<const float, 2> up, down;
    ATTENDANT_RETURN_IF_ERROR(tensors_.LoadTable(absl::StrCat(path, names_.router),
                                                 {config_.experts, config_.hidden}, layer.router));
    ATTENDANT_RETURN_IF_ERROR(
        tensors_.LoadTensor<2>(absl::StrCat(path, names_.experts_up), dims, up));
    ATTENDANT_RETURN_IF_ERROR(
        tensors_.LoadTensor<2>(absl::StrCat(path, names_.experts_down), dims, down));
    for (int64_t row = 0; row < up.dim(0); row += config_.ffn) {
      layer.experts.push_back({.up = {up.row(row), {config_.ffn, config_.hidden}},
                               .down = {down.row(row), {config_.ffn, config_.hidden}}});
    }
    return tensors_.LoadTensor<1>(absl::StrCat(path, names_.experts_bias), {config_.hidden},
                                  layer.experts_bias);
  }

  absl::Status LoadFfnUp(const std::string& path, EncoderLayerWeights& layer) {
    const auto load = [&](absl::string_view name, Parts parts) {
      return tensors_.LoadLinear(absl::StrCat(path, name), parts, config_.ffn, config_.hidden,
                                 family_config_.biases.ffn_up);
    };
    if (!names_.ffn_gate_up.empty()) {
      return load(names_.ffn_gate_up, {&layer.ffn_gate, &layer.ffn_up});
    }
    if (!names_.ffn_up_gate.empty()) {
      return load(names_.ffn_up_gate, {&layer.ffn_up, &layer.ffn_gate});
    }
    if (!config_.gated_ffn) return load(names_.ffn_up, {&layer.ffn_up});
    ATTENDANT_RETURN_IF_ERROR(load(names_.ffn_gate, {&layer.ffn_gate}));
    return load(names_.gated_ffn_up.empty() ? names_.ffn_up : names_.gated_ffn_up, {&layer.ffn_up});
  }

  const FamilyConfig& family_config_;
  const EncoderConfig& config_;
  const TensorNames& names_;
  StoredTensors tensors_;
  absl::string_view token_embedding_;
};

absl::StatusOr<FamilyConfig> ReadFamilyConfig(const JsonFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode json, folder.Read("config.json"));
  ATTENDANT_ASSIGN_OR_RETURN(const Family* family, FindFamily(json));
  return family->read_config(json);
}

}  // namespace

absl::StatusOr<EncoderConfig> ReadEncoderConfig(const JsonFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const FamilyConfig config, ReadFamilyConfig(folder));
  return config.encoder;
}

absl::StatusOr<int64_t> CountReorderedBytes(const JsonFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const FamilyConfig config, ReadFamilyConfig(folder));
  const EncoderConfig& encoder = config.encoder;
  const int64_t values = encoder.layers * encoder.qkv_width() * encoder.hidden;
  return config.qkv_by_heads ? values * static_cast<int64_t>(sizeof(float)) : 0;
}

absl::StatusOr<Checkpoint> LoadCheckpoint(const JsonFolder& folder, absl::string_view adapter) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode json, folder.Read("config.json"));
  ATTENDANT_ASSIGN_OR_RETURN(const Family* family, FindFamily(json));
  ATTENDANT_ASSIGN_OR_RETURN(const FamilyConfig config, family->read_config(json));
  const std::string& directory = folder.path();
  ATTENDANT_RETURN_IF_ERROR(CheckNoPeftAdapter(directory));
  const auto storage = std::make_shared<Storage>();
  ATTENDANT_ASSIGN_OR_RETURN(storage->store, TensorStore::Open(directory));
  Checkpoint checkpoint;
  absl::Status status = MergeAdapter(json, adapter, *storage->store);
  if (status.ok()) status = Loader(config, family->names, *storage).Load(checkpoint);
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(directory, ": ", status.message()));
  }
  checkpoint.weights.storage = storage;
  ATTENDANT_ASSIGN_OR_RETURN(
      checkpoint.classifier,
      ReadSequenceClassifier(json, config.encoder.hidden, directory, *storage->store));
  if (!checkpoint.classifier.has_value()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        checkpoint.classifier,
        ReadWordClassifier(json, folder, checkpoint.weights, *storage->store));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      checkpoint.token_heads,
      ReadTokenHeads(json, config.encoder, checkpoint.weights, directory, *storage->store));
  ATTENDANT_RETURN_IF_ERROR(ReadColbertHead(json, folder, config.encoder.hidden, checkpoint.weights,
                                            *storage->store, checkpoint.token_heads));
  ATTENDANT_RETURN_IF_ERROR(ReadM3Heads(directory, config.encoder.hidden, checkpoint.token_heads,
                                        checkpoint.unread_heads));
  return checkpoint;
}

}  // namespace attendant
