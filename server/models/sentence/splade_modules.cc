// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/splade_modules.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/sentence_module.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"
#include "kernels/io/json_file.h"

namespace attendant {
namespace {

// The folder of the module behind the Transformer.
absl::StatusOr<JsonFolder> FindPooling(const JsonFolder& root, const JsonNode& modules) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules.Elements());
  std::string path;
  ATTENDANT_RETURN_IF_ERROR(elements[1].Require("path", path));
  ATTENDANT_RETURN_IF_ERROR(CheckModulePath(elements[1], path));
  return root.At(path);
}

absl::StatusOr<SpladeOptions> ReadSplade(const JsonFolder& folder) {
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode config, folder.Read("config.json"));
  std::string pooling = "max", activation = "relu";
  ATTENDANT_RETURN_IF_ERROR(config.Read("pooling_strategy", pooling));
  if (pooling != "max" && pooling != "sum") {
    return Unsupported(config, "pooling_strategy", Quoted(pooling), "max, sum");
  }
  ATTENDANT_RETURN_IF_ERROR(config.Read("activation_function", activation));
  if (activation != "relu" && activation != "log1p_relu") {
    return Unsupported(config, "activation_function", Quoted(activation), "relu, log1p_relu");
  }
  return SpladeOptions{.sum = pooling == "sum", .twice = activation == "log1p_relu"};
}

}  // namespace

absl::StatusOr<std::optional<SpladeOptions>> FindSplade(const ModelFolder& folder) {
  std::optional<JsonFolder> pooling = folder.splade;
  if (!pooling.has_value()) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::optional<JsonNode> modules,
                               folder.root.Find("modules.json"));
    if (!modules.has_value()) return SpladeOptions{};
    ATTENDANT_ASSIGN_OR_RETURN(const bool sparse, IsSparseChain(*modules));
    if (!sparse) return std::nullopt;
    ATTENDANT_ASSIGN_OR_RETURN(pooling, FindPooling(folder.root, *modules));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const SpladeOptions splade, ReadSplade(*pooling));
  return splade;
}

absl::StatusOr<bool> IsSparseChain(const JsonNode& modules) {
  ATTENDANT_ASSIGN_OR_RETURN(const bool plain, IsModule(modules, 0, "Transformer"));
  ATTENDANT_ASSIGN_OR_RETURN(const bool masked_lm, IsModule(modules, 0, "MLMTransformer"));
  ATTENDANT_ASSIGN_OR_RETURN(const bool splade, IsModule(modules, 1, "SpladePooling"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> elements, modules.Elements());
  return (plain || masked_lm) && splade && elements.size() == 2;
}

}  // namespace attendant
