// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/sentence_module.h"

#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/read_tensor.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/tensor_store.h"

namespace attendant {
namespace {

constexpr char kEmbedding[] = "sentence_embedding", kTokenEmbeddings[] = "token_embeddings";

absl::Status CheckFeatureNames(const JsonNode& config, const std::string& name) {
  ATTENDANT_RETURN_IF_ERROR(CheckText(config, "module_input_name", name));
  return CheckText(config, "module_output_name", name);
}

absl::Status CheckDenseFeatures(const JsonNode& config, ModuleInput input) {
  std::string name = kEmbedding;
  if (input == ModuleInput::kTokens) {
    ATTENDANT_RETURN_IF_ERROR(config.Read("module_input_name", name));
  }
  return CheckFeatureNames(config, name == kEmbedding ? kEmbedding : kTokenEmbeddings);
}

absl::Status CheckWidth(const JsonNode& config, const char* field, int64_t width) {
  int64_t value = 0;
  ATTENDANT_RETURN_IF_ERROR(config.Require(field, value));
  if (value == width) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(config.where(), ": ", field, " is ", value,
                                                 ", the step before it gives ", width, " values"));
}

// Names of Python classes: their last component tells them apart.
struct ActivationName {
  const char* name;
  HeadActivation activation;
};

constexpr ActivationName kDenseActivations[] = {{"Tanh", HeadActivation::kTanh},
                                                {"Identity", HeadActivation::kNone},
                                                {"ReLU", HeadActivation::kRelu},
                                                {"GELU", HeadActivation::kGeluErf},
                                                {"Sigmoid", HeadActivation::kSigmoid}};

absl::StatusOr<HeadActivation> ReadActivation(const JsonNode& config) {
  std::string name = "torch.nn.modules.activation.Tanh";
  ATTENDANT_RETURN_IF_ERROR(config.Read("activation_function", name));
  const bool of_torch = absl::StartsWith(name, "torch.nn.");
  for (const ActivationName& known : kDenseActivations) {
    if (of_torch && absl::EndsWith(name, absl::StrCat(".", known.name))) return known.activation;
  }
  return Unsupported(config, "activation_function", Quoted(name),
                     "Tanh, Identity, ReLU, GELU and Sigmoid of torch.nn");
}

// The tensors of one module's folder.
class Tensors {
 public:
  static absl::StatusOr<Tensors> Open(const std::string& directory, const char* source) {
    ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<TensorStore> store, TensorStore::Open(directory));
    return Tensors(directory, source, std::move(store));
  }

  absl::StatusOr<std::vector<float>> Read(const std::string& name,
                                          const std::vector<int64_t>& dims) {
    const absl::StatusOr<const float*> values = ReadTensor(*store_, name, dims, source_);
    if (!values.ok()) {
      return absl::Status(values.status().code(),
                          absl::StrCat(directory_, ": ", values.status().message()));
    }
    read_.insert(name);
    const int64_t count =
        std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<int64_t>());
    return std::vector<float>(*values, *values + count);
  }

  // Refuses a tensor that was not read, as sentence-transformers does: it is a part of the module
  // that config.json leaves out.
  absl::Status CheckAllRead() const {
    for (const auto& [name, tensor] : store_->tensors()) {
      if (read_.contains(name)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          directory_, ": tensor ", Quoted(name), " is there, the module's config.json has none"));
    }
    return absl::OkStatus();
  }

 private:
  Tensors(std::string directory, const char* source, std::unique_ptr<TensorStore> store)
      : directory_(std::move(directory)), source_(source), store_(std::move(store)) {}

  std::string directory_;
  const char* source_;
  std::unique_ptr<TensorStore> store_;
  std::set<std::string> read_;
};

absl::StatusOr<HeadLinear> ReadLinear(const std::string& name, int64_t outputs, int64_t inputs,
                                      bool bias, Tensors& tensors) {
  HeadLinear linear{.outputs = outputs, .inputs = inputs};
  ATTENDANT_ASSIGN_OR_RETURN(linear.weight, tensors.Read(name + ".weight", {outputs, inputs}));
  if (!bias) return linear;
  ATTENDANT_ASSIGN_OR_RETURN(linear.bias, tensors.Read(name + ".bias", {outputs}));
  return linear;
}

// More would not be a head: its weights are read again for each sequence.
constexpr int64_t kMaxOutputs = 1 << 16;

}  // namespace

absl::string_view ModuleClass(absl::string_view type) {
  const bool known = absl::StartsWith(type, "sentence_transformers.") ||
                     absl::StartsWith(type, "pylate.") || type == "custom_st.Transformer";
  return known ? type.substr(type.rfind('.') + 1) : type;
}

absl::StatusOr<bool> IsModule(const JsonNode& modules, size_t index, absl::string_view name) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules.Elements());
  if (index >= elements.size()) return false;
  std::string type;
  ATTENDANT_RETURN_IF_ERROR(elements[index].Require("type", type));
  return ModuleClass(type) == name;
}

absl::Status CheckModulePath(const JsonNode& module, absl::string_view path) {
  if (!absl::StartsWith(path, "/") && !absl::StrContains(path, "..")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(module.where(), ": path ", Quote(path), " leaves the checkpoint's folder"));
}

absl::StatusOr<bool> IsLogitScoreChain(const JsonNode& modules) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules.Elements());
  ATTENDANT_ASSIGN_OR_RETURN(const bool transformer, IsModule(modules, 0, "Transformer"));
  ATTENDANT_ASSIGN_OR_RETURN(const bool score, IsModule(modules, 1, "LogitScore"));
  return transformer && score && elements.size() == 2;
}

absl::StatusOr<std::optional<JsonNode>> ReadLogitScore(const JsonFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> modules, folder.Find("modules.json"));
  if (!modules.has_value()) return std::nullopt;
  ATTENDANT_ASSIGN_OR_RETURN(const bool found, IsLogitScoreChain(*modules));
  if (!found) return std::nullopt;
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules->Elements());
  std::string path;
  ATTENDANT_RETURN_IF_ERROR(elements[1].Read("path", path));
  ATTENDANT_RETURN_IF_ERROR(CheckModulePath(elements[1], path));
  ATTENDANT_ASSIGN_OR_RETURN(JsonNode module, folder.At(path).Read("config.json"));
  return std::optional(std::move(module));
}

absl::StatusOr<SentenceHead::Dense> ReadDense(const JsonFolder& folder, int64_t width,
                                              ModuleInput input) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.Read("config.json"));
  ATTENDANT_RETURN_IF_ERROR(CheckDenseFeatures(config, input));
  ATTENDANT_RETURN_IF_ERROR(CheckWidth(config, "in_features", width));
  int64_t outputs = 0;
  bool bias = true;
  SentenceHead::Dense dense;
  ATTENDANT_RETURN_IF_ERROR(config.Require("out_features", outputs));
  if (outputs < 1 || outputs > kMaxOutputs) {
    return absl::InvalidArgumentError(absl::StrCat(config.where(), ": out_features is ", outputs,
                                                   ", it must be from 1 to ", kMaxOutputs));
  }
  ATTENDANT_RETURN_IF_ERROR(config.Read("bias", bias));
  ATTENDANT_RETURN_IF_ERROR(config.Read("use_residual", dense.use_residual));
  ATTENDANT_ASSIGN_OR_RETURN(dense.activation, ReadActivation(config));
  ATTENDANT_ASSIGN_OR_RETURN(Tensors tensors,
                             Tensors::Open(folder.path(), "the module's config.json makes it"));
  ATTENDANT_ASSIGN_OR_RETURN(dense.linear, ReadLinear("linear", outputs, width, bias, tensors));
  if (dense.use_residual && outputs != width) {
    ATTENDANT_ASSIGN_OR_RETURN(dense.residual,
                               ReadLinear("residual", outputs, width, false, tensors));
  }
  ATTENDANT_RETURN_IF_ERROR(tensors.CheckAllRead());
  return dense;
}

absl::StatusOr<HeadNorm> ReadHeadNorm(const JsonFolder& folder, int64_t width) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.Read("config.json"));
  ATTENDANT_RETURN_IF_ERROR(CheckWidth(config, "dimension", width));
  ATTENDANT_ASSIGN_OR_RETURN(Tensors tensors,
                             Tensors::Open(folder.path(), "the module's config.json makes it"));
  HeadNorm norm{.epsilon = 1e-5f};  // of torch.nn.LayerNorm
  ATTENDANT_ASSIGN_OR_RETURN(norm.gamma, tensors.Read("norm.weight", {width}));
  ATTENDANT_ASSIGN_OR_RETURN(norm.beta, tensors.Read("norm.bias", {width}));
  ATTENDANT_RETURN_IF_ERROR(tensors.CheckAllRead());
  return norm;
}

absl::Status CheckFeatures(const JsonFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.ReadOrEmpty("config.json"));
  return CheckFeatureNames(config, kEmbedding);
}

absl::Status CheckTokenFeatures(const JsonFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.Read("config.json"));
  std::string name;
  ATTENDANT_RETURN_IF_ERROR(config.Require("module_input_name", name));
  return CheckFeatureNames(config, kTokenEmbeddings);
}

}  // namespace attendant
