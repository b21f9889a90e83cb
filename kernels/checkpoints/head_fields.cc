// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/head_fields.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/json_file.h"
#include "kernels/io/tensor_store.h"

namespace attendant {

absl::StatusOr<std::string> FirstArchitecture(const JsonNode& config) {
  std::string name;
  if (!config.Has("architectures")) return name;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode list, config.Field("architectures"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<JsonNode> names, list.Elements());
  if (!names.empty()) ATTENDANT_RETURN_IF_ERROR(names.front().Get(name));
  return name;
}

absl::StatusOr<int64_t> CountLabels(const JsonNode& config, absl::string_view out,
                                    const TensorStore& store) {
  if (config.Has("id2label")) {
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode names, config.Field("id2label"));
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> keys, names.FieldNames());
    if (keys.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(names.where(), " has no labels"));
    }
    return static_cast<int64_t>(keys.size());
  }
  const StoredTensor* tensor = store.Find(absl::StrCat(out, ".weight"));
  return tensor == nullptr || tensor->dims.empty() ? 2 : tensor->dims[0];
}

absl::StatusOr<std::vector<std::string>> ReadLabels(const JsonNode& config, int64_t count) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < count; ++i) {
    labels.push_back(absl::StrCat("LABEL_", i));
    if (!config.Has("id2label")) continue;
    ATTENDANT_ASSIGN_OR_RETURN(const JsonNode names, config.Field("id2label"));
    ATTENDANT_RETURN_IF_ERROR(names.Require(absl::StrCat(i), labels.back()));
  }
  return labels;
}

absl::Status CheckVectorDims(absl::string_view source, int64_t dims) {
  constexpr int64_t kMaxDims = 4096;
  if (dims <= kMaxDims) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      source, " gives ", dims, " values, of vectors of tokens the limit is ", kMaxDims));
}

}  // namespace attendant
