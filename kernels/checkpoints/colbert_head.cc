// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/colbert_head.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/checkpoints/head_fields.h"
#include "kernels/checkpoints/read_tensor.h"
#include "kernels/checkpoints/sentence_module.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"

namespace attendant {
namespace {

constexpr absl::string_view kStanfordArchitecture = "HF_ColBERT";
constexpr absl::string_view kMaskModule = "MultiVectorMask";

TokenHead VectorsOf(const LinearWeights& out, std::shared_ptr<const void> storage) {
  return {.kind = TokenHeadKind::kVectors,
          .out = out,
          .options = {.late_interaction = true},
          .storage = std::move(storage)};
}

absl::StatusOr<JsonFolder> ReadModuleFolder(const JsonFolder& folder, const JsonNode& module) {
  std::string path;
  ATTENDANT_RETURN_IF_ERROR(module.Require("path", path));
  ATTENDANT_RETURN_IF_ERROR(CheckModulePath(module, path));
  return folder.At(path);
}

// The linear layer with its residual connection, which is linear too, in one.
HeadLinear AddResidual(SentenceHead::Dense dense) {
  HeadLinear linear = std::move(dense.linear);
  if (!dense.use_residual) return linear;
  for (size_t i = 0; i < dense.residual.weight.size(); ++i) {
    linear.weight[i] += dense.residual.weight[i];
  }
  const auto width = static_cast<size_t>(linear.inputs);
  for (size_t i = 0; dense.residual.outputs == 0 && i < width; ++i) {
    linear.weight[i * width + i] += 1.0f;
  }
  return linear;
}

absl::StatusOr<HeadLinear> ReadTokenDense(const JsonFolder& folder, int64_t width) {
  ATTENDANT_ASSIGN_OR_RETURN(SentenceHead::Dense dense,
                             ReadDense(folder, width, ModuleInput::kTokens));
  if (dense.activation != HeadActivation::kNone) {
    return absl::UnimplementedError(absl::StrCat(
        folder.path(), "/config.json: vectors of tokens are supported without an activation"));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckVectorDims(
      absl::StrCat(folder.path(), "/config.json: `out_features`"), dense.linear.outputs));
  return AddResidual(std::move(dense));
}

// row [matrix.outputs] x matrix [matrix.outputs, matrix.inputs]
std::vector<double> MultiplyRow(const float* row, const HeadLinear& matrix) {
  const auto columns = static_cast<size_t>(matrix.inputs);
  std::vector<double> values(columns);
  for (size_t k = 0; k < static_cast<size_t>(matrix.outputs); ++k) {
    const auto factor = static_cast<double>(row[k]);
    const float* from = matrix.weight.data() + k * columns;
    for (size_t i = 0; i < columns; ++i) values[i] += factor * static_cast<double>(from[i]);
  }
  return values;
}

// second(first(x)) as one layer
HeadLinear Compose(const HeadLinear& first, const HeadLinear& second) {
  HeadLinear both{.outputs = second.outputs, .inputs = first.inputs};
  if (!first.bias.empty() || !second.bias.empty()) {
    both.bias.resize(static_cast<size_t>(both.outputs));
  }
  for (size_t o = 0; o < static_cast<size_t>(second.outputs); ++o) {
    const float* row = second.weight.data() + o * static_cast<size_t>(second.inputs);
    for (const double value : MultiplyRow(row, first)) {
      both.weight.push_back(static_cast<float>(value));
    }
    double bias = second.bias.empty() ? 0 : static_cast<double>(second.bias[o]);
    for (size_t k = 0; k < first.bias.size(); ++k) {
      bias += static_cast<double>(row[k]) * static_cast<double>(first.bias[k]);
    }
    if (!both.bias.empty()) both.bias[o] = static_cast<float>(bias);
  }
  return both;
}

// `layers`, each on the outputs of the one before, as one. INVALID_ARGUMENT where that takes more
// multiplications than some seconds allow. From the last one: its outputs are the fewest.
absl::StatusOr<HeadLinear> ComposeAll(absl::string_view where, std::vector<HeadLinear> layers) {
  // A first layer of 4096 x 4096 and a second of 128 x 4096 take 2^31.
  constexpr int64_t kMaxMultiplications = int64_t{1} << 33;
  HeadLinear all = std::move(layers.back());
  layers.pop_back();
  int64_t multiplications = 0;
  for (const HeadLinear& layer : layers) {
    multiplications += all.outputs * layer.outputs * layer.inputs;
  }
  if (multiplications > kMaxMultiplications) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": to make one layer of ", layers.size() + 1, " Dense modules takes ",
                     multiplications, " multiplications, the limit is ", kMaxMultiplications));
  }
  for (; !layers.empty(); layers.pop_back()) all = Compose(layers.back(), all);
  return all;
}

// Modules [1, end) of modules.json are Dense.
absl::StatusOr<size_t> EndOfDense(const JsonNode& modules) {
  for (size_t i = 1;; ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool dense, IsModule(modules, i, "Dense"));
    if (!dense) return i;
  }
}

// Behind the linear layers, sentence-transformers saves what PyLate does without modules.
absl::Status CheckNormalized(const JsonFolder& folder, const JsonNode& modules, size_t first) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules.Elements());
  bool normalized = first == elements.size();
  for (size_t i = first; i < elements.size(); ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool normalize, IsModule(modules, i, "Normalize"));
    if (!normalize) continue;
    ATTENDANT_ASSIGN_OR_RETURN(const JsonFolder module, ReadModuleFolder(folder, elements[i]));
    ATTENDANT_RETURN_IF_ERROR(CheckTokenFeatures(module));
    normalized = true;
  }
  if (normalized) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(modules.where(), ": vectors of tokens are supported with a Normalize behind"));
}

absl::StatusOr<TokenHead> FromModules(const JsonFolder& folder, const JsonNode& modules,
                                      int64_t hidden) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules.Elements());
  ATTENDANT_ASSIGN_OR_RETURN(const size_t end, EndOfDense(modules));
  ATTENDANT_RETURN_IF_ERROR(CheckNormalized(folder, modules, end));
  std::vector<HeadLinear> layers;
  for (size_t i = 1; i < end; ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(const JsonFolder module, ReadModuleFolder(folder, elements[i]));
    ATTENDANT_ASSIGN_OR_RETURN(HeadLinear next,
                               ReadTokenDense(module, i == 1 ? hidden : layers.back().outputs));
    layers.push_back(std::move(next));
  }
  ATTENDANT_ASSIGN_OR_RETURN(HeadLinear all, ComposeAll(modules.where(), std::move(layers)));
  const auto linear = std::make_shared<const HeadLinear>(std::move(all));
  LinearWeights out;
  out.weight = {linear->weight.data(), {linear->outputs, linear->inputs}};
  if (!linear->bias.empty()) out.bias = {linear->bias.data(), {linear->outputs}};
  return VectorsOf(out, linear);
}

absl::StatusOr<LinearWeights> ReadStanfordLinear(int64_t hidden, TensorStore& store) {
  const std::string name = "linear.weight", bias_name = "linear.bias";
  const StoredTensor* stored = store.Find(name);
  const int64_t outputs = stored == nullptr || stored->dims.empty() ? 128 : stored->dims[0];
  ATTENDANT_RETURN_IF_ERROR(CheckVectorDims(absl::StrCat("tensor `", name, "`"), outputs));
  const std::array<int64_t, 2> dims = {outputs, hidden};
  const std::array<int64_t, 1> bias_dims = {outputs};
  constexpr absl::string_view kSource = "the encoder makes it";
  LinearWeights out;
  ATTENDANT_ASSIGN_OR_RETURN(const float* weight, ReadTensor(store, name, dims, kSource));
  out.weight = {weight, dims};
  if (store.Find(bias_name) == nullptr) return out;
  ATTENDANT_ASSIGN_OR_RETURN(const float* bias, ReadTensor(store, bias_name, bias_dims, kSource));
  out.bias = {bias, bias_dims};
  return out;
}

}  // namespace

absl::StatusOr<bool> IsColbertChain(const JsonNode& modules) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules.Elements());
  if (elements.size() < 2 || elements.size() > kMaxModules) return false;
  ATTENDANT_ASSIGN_OR_RETURN(const bool transformer, IsModule(modules, 0, "Transformer"));
  ATTENDANT_ASSIGN_OR_RETURN(const size_t end, EndOfDense(modules));
  size_t masks = 0, normalizes = 0;
  for (size_t i = end; i < elements.size(); ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool mask, IsModule(modules, i, kMaskModule));
    ATTENDANT_ASSIGN_OR_RETURN(const bool normalize, IsModule(modules, i, "Normalize"));
    masks += mask ? 1 : 0;
    normalizes += normalize ? 1 : 0;
  }
  const size_t behind = elements.size() - end;
  return transformer && end > 1 && behind == masks + normalizes && normalizes <= 1 &&
         masks == (behind > 0 ? 1u : 0u);
}

absl::StatusOr<std::optional<JsonFolder>> FindMaskModule(const JsonFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> modules, folder.Find("modules.json"));
  if (!modules.has_value()) return std::nullopt;
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules->Elements());
  for (size_t i = 0; i < std::min(elements.size(), kMaxModules); ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool mask, IsModule(*modules, i, kMaskModule));
    if (!mask) continue;
    ATTENDANT_ASSIGN_OR_RETURN(JsonFolder found, ReadModuleFolder(folder, elements[i]));
    return std::optional(std::move(found));
  }
  return std::nullopt;
}

absl::Status ReadColbertHead(const JsonNode& config, const JsonFolder& folder, int64_t hidden,
                             const EncoderWeights& weights, TensorStore& store,
                             std::vector<TokenHead>& heads) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> modules, folder.Find("modules.json"));
  if (modules.has_value()) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool colbert, IsColbertChain(*modules));
    if (colbert) {
      ATTENDANT_ASSIGN_OR_RETURN(TokenHead head, FromModules(folder, *modules, hidden));
      heads.push_back(std::move(head));
      return absl::OkStatus();
    }
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::string architecture, FirstArchitecture(config));
  if (architecture != kStanfordArchitecture) return absl::OkStatus();
  const absl::StatusOr<LinearWeights> out = ReadStanfordLinear(hidden, store);
  if (!out.ok()) {
    return absl::Status(out.status().code(),
                        absl::StrCat(folder.path(), ": ", out.status().message()));
  }
  heads.push_back(VectorsOf(*out, weights.storage));
  return absl::OkStatus();
}

}  // namespace attendant
