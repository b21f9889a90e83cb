// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/attention_module.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"
#include "kernels/io/quoted.h"
#include "kernels/io/tensor_store.h"

namespace attendant {
namespace {

constexpr char kMultiHead[] = "MultiheadAttention";
constexpr char kLayer[] = "TransformerEncoderLayer";
constexpr char kEncoder[] = "TransformerEncoder";

// A size that the tensors give already: a field that is there can only agree.
absl::Status CheckSame(const JsonNode& json, const char* field, int64_t size) {
  int64_t value = size;
  if (absl::Status status = json.Read(field, value); !status.ok()) return status;
  if (value == size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(json.where(), ": ", Quoted(field), " is ", value,
                                                 ", the tensors make it ", size));
}

absl::Status CheckSame(const JsonNode& json, const char* field, bool is) {
  bool value = is;
  if (absl::Status status = json.Read(field, value); !status.ok()) return status;
  if (value == is) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(json.where(), ": ", Quoted(field), " is ",
                                                 value ? "true" : "false", ", the tensors make it ",
                                                 is ? "true" : "false"));
}

absl::Status ReadActivation(const JsonNode& json, ModuleConfig& config) {
  std::string activation = "relu";
  if (absl::Status status = json.Read("activation", activation); !status.ok()) return status;
  if (activation != "relu" && activation != "gelu") {
    return Unsupported(json, "activation", Quoted(activation), "relu or gelu");
  }
  config.activation = activation == "relu" ? Activation::kRelu : Activation::kGeluErf;
  return absl::OkStatus();
}

// Fills config and weights from a folder's JSON and tensors.
class ModuleLoader {
 public:
  ModuleLoader(const JsonNode& json, TensorStore& store) : json_(json), store_(store) {}

  absl::Status Load(ModuleCheckpoint& module) {
    std::string type;
    if (absl::Status status = json_.Require("type", type); !status.ok()) return status;
    absl::Status status;
    if (type == kMultiHead) {
      status = LoadMultiHeadModule(module);
    } else if (type == kLayer || type == kEncoder) {
      status = LoadEncoder(type == kEncoder, module);
    } else {
      return Unsupported(json_, "type", Quoted(type),
                         absl::StrCat(kMultiHead, ", ", kLayer, " or ", kEncoder));
    }
    return status.ok() ? ValidateWeights(module.config, module.weights) : status;
  }

 private:
  absl::Status LoadMultiHeadModule(ModuleCheckpoint& module) {
    ModuleConfig& config = module.config;
    config.type = ModuleType::kMultiHead;
    absl::Status status = json_.Require("num_heads", config.heads);
    for (const char* field : {"add_bias_kv", "add_zero_attn"}) {
      if (status.ok()) status = CheckFalse(json_, field);
    }
    if (status.ok()) status = LoadMultiHead("", module.weights.attention);
    if (!status.ok()) return status;
    const MultiHeadWeights& weights = module.weights.attention;
    config.hidden = weights.query.weight.dim(1);
    config.key_dim = weights.key.weight.dim(1);
    config.value_dim = weights.value.weight.dim(1);
    status = CheckSame(json_, "embed_dim", config.hidden);
    if (status.ok()) status = CheckSame(json_, "kdim", config.key_dim);
    if (status.ok()) status = CheckSame(json_, "vdim", config.value_dim);
    return status.ok() ? CheckSame(json_, "bias", !weights.query.bias.empty()) : status;
  }

  absl::Status LoadEncoder(bool stack, ModuleCheckpoint& module) {
    ModuleConfig& config = module.config;
    ModuleWeights& weights = module.weights;
    config.type = ModuleType::kTransformerEncoder;
    absl::Status status = json_.Require("nhead", config.heads);
    if (status.ok()) status = json_.Read("norm_first", config.norm_first);
    if (status.ok()) status = ReadLayerNormEpsilon(json_, 1e-5, config.layer_norm_epsilon);
    if (status.ok()) status = ReadActivation(json_, config);
    if (!status.ok()) return status;
    do {  // at least one layer, and for a stack as many as there are
      const std::string path = stack ? absl::StrCat("layers.", weights.layers.size(), ".") : "";
      status = LoadLayer(path, weights.layers.emplace_back());
      if (!status.ok()) return status;
    } while (stack && HasLayer(weights.layers.size()));
    config.layers = static_cast<int64_t>(weights.layers.size());
    const TransformerLayerWeights& layer = weights.layers.front();
    config.hidden = config.key_dim = config.value_dim = layer.attention.query.weight.dim(1);
    config.ffn = layer.ffn_up.weight.dim(0);
    config.final_norm = stack && store_.Find("norm.weight") != nullptr;
    if (config.final_norm) status = LoadNorm("norm", weights.final_norm);
    return status.ok() ? CheckEncoder(stack, layer, config) : status;
  }

  absl::Status CheckEncoder(bool stack, const TransformerLayerWeights& layer,
                            const ModuleConfig& config) const {
    absl::Status status = CheckSame(json_, "d_model", config.hidden);
    if (status.ok()) status = CheckSame(json_, "dim_feedforward", config.ffn);
    if (status.ok()) status = CheckSame(json_, "bias", !layer.ffn_up.bias.empty());
    if (!stack || !status.ok()) return status;
    status = CheckSame(json_, "num_layers", config.layers);
    return status.ok() ? CheckSame(json_, "final_norm", config.final_norm) : status;
  }

  bool HasLayer(size_t layer) const {
    return store_.Find(absl::StrCat("layers.", layer, ".linear1.weight")) != nullptr;
  }

  absl::Status LoadLayer(const std::string& path, TransformerLayerWeights& layer) {
    absl::Status status = LoadMultiHead(path + "self_attn.", layer.attention);
    if (status.ok()) status = LoadNorm(path + "norm1", layer.attention_norm);
    if (status.ok()) status = LoadLinear(path + "linear1", layer.ffn_up);
    if (status.ok()) status = LoadLinear(path + "linear2", layer.ffn_down);
    if (status.ok()) status = LoadNorm(path + "norm2", layer.ffn_norm);
    return status;
  }

  absl::Status LoadMultiHead(const std::string& path, MultiHeadWeights& weights) {
    for (const char* extra : {"bias_k", "bias_v"}) {
      if (store_.Find(path + extra) != nullptr) {
        return absl::UnimplementedError(absl::StrCat(
            "tensor ", Quoted(path + extra), ": modules with add_bias_kv are not supported"));
      }
    }
    absl::Status status = store_.Find(path + "in_proj_weight") != nullptr
                              ? LoadJointProjections(path, weights)
                              : LoadSeparateProjections(path, weights);
    if (status.ok()) status = LoadInputBiases(path, weights);
    if (status.ok()) status = LoadLinear(path + "out_proj", weights.output);
    return status;
  }

  // in_proj_weight [3 * hidden, hidden]: query, key and value one below the other.
  absl::Status LoadJointProjections(const std::string& path, MultiHeadWeights& weights) {
    TensorView<const float, 2> joint;
    absl::Status status = LoadTensor<2>(path + "in_proj_weight", joint);
    if (!status.ok()) return status;
    const int64_t hidden = joint.dim(1);
    if (joint.dim(0) % 3 != 0 || joint.dim(0) / 3 != hidden) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", Quoted(path + "in_proj_weight"), " has shape [", joint.dim(0),
                       ", ", hidden, "], expected three times as many rows as columns"));
    }
    int64_t part = 0;
    for (LinearWeights* linear : {&weights.query, &weights.key, &weights.value}) {
      linear->weight = TensorView<const float, 2>(joint.row(hidden * part++), {hidden, hidden});
    }
    return absl::OkStatus();
  }

  absl::Status LoadSeparateProjections(const std::string& path, MultiHeadWeights& weights) {
    absl::Status status = LoadTensor<2>(path + "q_proj_weight", weights.query.weight);
    if (status.ok()) status = LoadTensor<2>(path + "k_proj_weight", weights.key.weight);
    if (status.ok()) status = LoadTensor<2>(path + "v_proj_weight", weights.value.weight);
    return status;
  }

  // in_proj_bias [3 * hidden], absent without bias.
  absl::Status LoadInputBiases(const std::string& path, MultiHeadWeights& weights) {
    const std::string name = path + "in_proj_bias";
    if (store_.Find(name) == nullptr) return absl::OkStatus();
    TensorView<const float, 1> joint;
    if (absl::Status status = LoadTensor<1>(name, joint); !status.ok()) return status;
    const int64_t hidden = weights.query.weight.dim(0);
    if (joint.dim(0) % 3 != 0 || joint.dim(0) / 3 != hidden) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(name), " has shape [",
                                                     joint.dim(0), "], expected 3 * ", hidden));
    }
    int64_t part = 0;
    for (LinearWeights* linear : {&weights.query, &weights.key, &weights.value}) {
      linear->bias = TensorView<const float, 1>(joint.data() + hidden * part++, {hidden});
    }
    return absl::OkStatus();
  }

  absl::Status LoadLinear(const std::string& path, LinearWeights& linear) {
    absl::Status status = LoadTensor<2>(path + ".weight", linear.weight);
    return status.ok() ? LoadOptional(path + ".bias", linear.bias) : status;
  }

  absl::Status LoadNorm(const std::string& path, LayerNormWeights& norm) {
    absl::Status status = LoadTensor<1>(path + ".weight", norm.gamma);
    return status.ok() ? LoadOptional(path + ".bias", norm.beta) : status;
  }

  absl::Status LoadOptional(const std::string& name, TensorView<const float, 1>& to) {
    return store_.Find(name) == nullptr ? absl::OkStatus() : LoadTensor<1>(name, to);
  }

  template <int rank>
  absl::Status LoadTensor(const std::string& name, TensorView<const float, rank>& to) {
    const StoredTensor* tensor = store_.Find(name);
    if (tensor == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(name), " is missing"));
    }
    if (tensor->dims.size() != rank) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(name), " has shape [",
                                                     absl::StrJoin(tensor->dims, ", "),
                                                     "], expected ", rank, " dimensions"));
    }
    absl::StatusOr<const float*> values = store_.Floats(*tensor);
    if (!values.ok()) return values.status();
    std::array<int64_t, rank> dims;
    std::copy_n(tensor->dims.begin(), rank, dims.begin());
    to = TensorView<const float, rank>(*values, dims);
    return absl::OkStatus();
  }

  const JsonNode& json_;
  TensorStore& store_;
};

}  // namespace

absl::StatusOr<ModuleCheckpoint> LoadAttentionModule(const std::string& directory) {
  absl::StatusOr<JsonNode> json = ReadJsonFile(directory + "/config.json");
  if (!json.ok()) return json.status();
  absl::StatusOr<std::unique_ptr<TensorStore>> store = TensorStore::Open(directory);
  if (!store.ok()) return store.status();
  ModuleCheckpoint module;
  if (absl::Status status = ModuleLoader(*json, **store).Load(module); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(directory, ": ", status.message()));
  }
  module.weights.storage = std::shared_ptr<const TensorStore>(*std::move(store));
  return module;
}

}  // namespace attendant
