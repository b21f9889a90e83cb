// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/attention_module.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"

namespace attendant {
namespace {

constexpr char kMultiHead[] = "MultiheadAttention";
constexpr char kLayer[] = "TransformerEncoderLayer";
constexpr char kEncoder[] = "TransformerEncoder";

// A size that the tensors give already: a field that is there can only agree.
absl::Status CheckSame(const JsonNode& json, const char* field, int64_t size) {
  int64_t value = size;
  ATTENDANT_RETURN_IF_ERROR(json.Read(field, value));
  if (value == size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(json.where(), ": ", Quoted(field), " is ", value,
                                                 ", the tensors make it ", size));
}

absl::Status CheckSame(const JsonNode& json, const char* field, bool is) {
  bool value = is;
  ATTENDANT_RETURN_IF_ERROR(json.Read(field, value));
  if (value == is) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(json.where(), ": ", Quoted(field), " is ",
                                                 value ? "true" : "false", ", the tensors make it ",
                                                 is ? "true" : "false"));
}

absl::Status ReadActivation(const JsonNode& json, ModuleConfig& config) {
  std::string activation = "relu";
  ATTENDANT_RETURN_IF_ERROR(json.Read("activation", activation));
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
    ATTENDANT_RETURN_IF_ERROR(json_.Require("type", type));
    if (type == kMultiHead) {
      ATTENDANT_RETURN_IF_ERROR(LoadMultiHeadModule(module));
    } else if (type == kLayer || type == kEncoder) {
      ATTENDANT_RETURN_IF_ERROR(LoadEncoder(type == kEncoder, module));
    } else {
      return Unsupported(json_, "type", Quoted(type),
                         absl::StrCat(kMultiHead, ", ", kLayer, " or ", kEncoder));
    }
    return ValidateWeights(module.config, module.weights);
  }

 private:
  absl::Status LoadMultiHeadModule(ModuleCheckpoint& module) {
    ModuleConfig& config = module.config;
    config.type = ModuleType::kMultiHead;
    ATTENDANT_RETURN_IF_ERROR(json_.Require("num_heads", config.heads));
    ATTENDANT_RETURN_IF_ERROR(CheckFalse(json_, "add_bias_kv"));
    ATTENDANT_RETURN_IF_ERROR(CheckFalse(json_, "add_zero_attn"));
    ATTENDANT_RETURN_IF_ERROR(LoadMultiHead("", module.weights.attention));
    const MultiHeadWeights& weights = module.weights.attention;
    config.hidden = weights.query.weight.dim(1);
    config.key_dim = weights.key.weight.dim(1);
    config.value_dim = weights.value.weight.dim(1);
    ATTENDANT_RETURN_IF_ERROR(CheckSame(json_, "embed_dim", config.hidden));
    ATTENDANT_RETURN_IF_ERROR(CheckSame(json_, "kdim", config.key_dim));
    ATTENDANT_RETURN_IF_ERROR(CheckSame(json_, "vdim", config.value_dim));
    return CheckSame(json_, "bias", !weights.query.bias.empty());
  }

  absl::Status LoadEncoder(bool stack, ModuleCheckpoint& module) {
    ModuleConfig& config = module.config;
    ModuleWeights& weights = module.weights;
    config.type = ModuleType::kTransformerEncoder;
    ATTENDANT_RETURN_IF_ERROR(json_.Require("nhead", config.heads));
    ATTENDANT_RETURN_IF_ERROR(json_.Read("norm_first", config.norm_first));
    ATTENDANT_RETURN_IF_ERROR(
        ReadLayerNormEpsilon(json_, "layer_norm_eps", 1e-5, config.layer_norm_epsilon));
    ATTENDANT_RETURN_IF_ERROR(ReadActivation(json_, config));
    do {  // at least one layer, and for a stack as many as there are
      const std::string path = stack ? absl::StrCat("layers.", weights.layers.size(), ".") : "";
      ATTENDANT_RETURN_IF_ERROR(LoadLayer(path, weights.layers.emplace_back()));
    } while (stack && HasLayer(weights.layers.size()));
    config.layers = static_cast<int64_t>(weights.layers.size());
    const EncoderLayerWeights& layer = weights.layers.front();
    config.hidden = config.key_dim = config.value_dim = layer.query.weight.dim(1);
    config.ffn = layer.ffn_up.weight.dim(0);
    config.final_norm = stack && store_.Find("norm.weight") != nullptr;
    if (config.final_norm) ATTENDANT_RETURN_IF_ERROR(LoadFinalNorm(module));
    return CheckEncoder(stack, layer, config);
  }

  // A module that the caller of PyTorch makes: it does not have the layers' epsilon.
  absl::Status LoadFinalNorm(ModuleCheckpoint& module) {
    ATTENDANT_RETURN_IF_ERROR(
        ReadLayerNormEpsilon(json_, "final_norm_eps", 1e-5, module.config.final_norm_epsilon));
    return LoadNorm("norm", module.weights.final_norm);
  }

  absl::Status CheckEncoder(bool stack, const EncoderLayerWeights& layer,
                            const ModuleConfig& config) const {
    ATTENDANT_RETURN_IF_ERROR(CheckSame(json_, "d_model", config.hidden));
    ATTENDANT_RETURN_IF_ERROR(CheckSame(json_, "dim_feedforward", config.ffn));
    ATTENDANT_RETURN_IF_ERROR(CheckSame(json_, "bias", !layer.ffn_up.bias.empty()));
    if (!stack) return absl::OkStatus();
    ATTENDANT_RETURN_IF_ERROR(CheckSame(json_, "num_layers", config.layers));
    return CheckSame(json_, "final_norm", config.final_norm);
  }

  bool HasLayer(size_t layer) const {
    return store_.Find(absl::StrCat("layers.", layer, ".linear1.weight")) != nullptr;
  }

  absl::Status LoadLayer(const std::string& path, EncoderLayerWeights& layer) {
    ATTENDANT_RETURN_IF_ERROR(LoadMultiHead(path + "self_attn.", layer));
    ATTENDANT_RETURN_IF_ERROR(LoadNorm(path + "norm1", layer.attention_norm));
    ATTENDANT_RETURN_IF_ERROR(LoadLinear(path + "linear1", layer.ffn_up));
    ATTENDANT_RETURN_IF_ERROR(LoadLinear(path + "linear2", layer.ffn_down));
    return LoadNorm(path + "norm2", layer.ffn_norm);
  }

  absl::Status LoadMultiHead(const std::string& path, MultiHeadWeights& weights) {
    for (const char* extra : {"bias_k", "bias_v"}) {
      if (store_.Find(path + extra) != nullptr) {
        return absl::UnimplementedError(absl::StrCat(
            "tensor ", Quoted(path + extra), ": modules with add_bias_kv are not supported"));
      }
    }
    ATTENDANT_RETURN_IF_ERROR(store_.Find(path + "in_proj_weight") != nullptr
                                  ? LoadJointProjections(path, weights)
                                  : LoadSeparateProjections(path, weights));
    ATTENDANT_RETURN_IF_ERROR(LoadInputBiases(path, weights));
    return LoadLinear(path + "out_proj", weights.attention_output);
  }

  // in_proj_weight [3 * hidden, hidden]: query, key and value one below the other.
  absl::Status LoadJointProjections(const std::string& path, MultiHeadWeights& weights) {
    TensorView<const float, 2> joint;
    ATTENDANT_RETURN_IF_ERROR(LoadTensor<2>(path + "in_proj_weight", joint));
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
    ATTENDANT_RETURN_IF_ERROR(LoadTensor<2>(path + "q_proj_weight", weights.query.weight));
    ATTENDANT_RETURN_IF_ERROR(LoadTensor<2>(path + "k_proj_weight", weights.key.weight));
    return LoadTensor<2>(path + "v_proj_weight", weights.value.weight);
  }

  // in_proj_bias [3 * hidden], absent without bias.
  absl::Status LoadInputBiases(const std::string& path, MultiHeadWeights& weights) {
    const std::string name = path + "in_proj_bias";
    if (store_.Find(name) == nullptr) return absl::OkStatus();
    TensorView<const float, 1> joint;
    ATTENDANT_RETURN_IF_ERROR(LoadTensor<1>(name, joint));
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
    ATTENDANT_RETURN_IF_ERROR(LoadTensor<2>(path + ".weight", linear.weight));
    return LoadOptional(path + ".bias", linear.bias);
  }

  absl::Status LoadNorm(const std::string& path, LayerNormWeights& norm) {
    ATTENDANT_RETURN_IF_ERROR(LoadTensor<1>(path + ".weight", norm.gamma));
    return LoadOptional(path + ".bias", norm.beta);
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
    ATTENDANT_ASSIGN_OR_RETURN(const float* values, store_.Floats(*tensor));
    std::array<int64_t, rank> dims;
    std::copy_n(tensor->dims.begin(), rank, dims.begin());
    to = TensorView<const float, rank>(values, dims);
    return absl::OkStatus();
  }

  const JsonNode& json_;
  TensorStore& store_;
};

}  // namespace

absl::StatusOr<ModuleCheckpoint> LoadAttentionModule(const JsonFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.Read("config.json"));
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<TensorStore> store, TensorStore::Open(folder.path()));
  ModuleCheckpoint module;
  if (absl::Status status = ModuleLoader(config, *store).Load(module); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(folder.path(), ": ", status.message()));
  }
  module.weights.storage = std::shared_ptr<const TensorStore>(std::move(store));
  return module;
}

}  // namespace attendant
