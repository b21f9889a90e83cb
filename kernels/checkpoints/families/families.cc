// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "kernels/checkpoints/families/all_families.h"
#include "kernels/checkpoints/families/family.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "kernels/io/config_fields.h"

namespace attendant {
namespace {

constexpr const Family* kFamilies[] = {&kBert,       &kDistilBert, &kElectra,
                                       &kModernBert, &kMpnet,      &kRoberta};

std::string AllModelTypes() {
  std::vector<absl::string_view> types;
  for (const Family* family : kFamilies) {
    types.insert(types.end(), family->model_types.begin(), family->model_types.end());
  }
  std::sort(types.begin(), types.end());
  return absl::StrJoin(types, ", ");
}

// Code in the checkpoint's folder may compute anything, whatever the model_type says.
absl::Status CheckNoCode(const JsonNode& json) {
  if (!json.Has("auto_map")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode map, json.Field("auto_map"));
  if (!map.Has("AutoModel")) return absl::OkStatus();
  std::string code;
  ATTENDANT_RETURN_IF_ERROR(map.Require("AutoModel", code));
  return Unsupported(json, "auto_map", Quoted(code), "a model of transformers itself");
}

}  // namespace

absl::StatusOr<const Family*> FindFamily(const JsonNode& json) {
  std::string type;
  ATTENDANT_RETURN_IF_ERROR(json.Require("model_type", type));
  ATTENDANT_RETURN_IF_ERROR(CheckNoCode(json));
  for (const Family* family : kFamilies) {
    const auto& types = family->model_types;
    if (std::find(types.begin(), types.end(), type) != types.end()) return family;
  }
  return Unsupported(json, "model_type", Quoted(type), AllModelTypes());
}

}  // namespace attendant
