// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
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

constexpr const Family* kFamilies[] = {
    &kAlbert,   &kBert,    &kDebertaV2,  &kDistilBert, &kElectra,    &kEsm,
    &kEuroBert, &kGemma3,  &kGte,        &kJinaBert,   &kJinaQkNorm, &kJinaV3,
    &kLlama,    &kMistral, &kModernBert, &kMpnet,      &kNeoBert,    &kNomicBert,
    &kQwen2,    &kQwen3,   &kRoberta,    &kT5};

std::string AllModelTypes() {
  std::vector<absl::string_view> types;
  for (const Family* family : kFamilies) {
    types.insert(types.end(), family->model_types.begin(), family->model_types.end());
  }
  std::sort(types.begin(), types.end());
  return absl::StrJoin(types, ", ");
}

const Family* Find(std::span<const absl::string_view> Family::*names, absl::string_view name) {
  for (const Family* family : kFamilies) {
    const auto& of_family = family->*names;
    if (std::find(of_family.begin(), of_family.end(), name) != of_family.end()) return family;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::string> ReadCode(const JsonNode& json) {
  std::string code;
  if (!json.Has("auto_map")) return code;
  ATTENDANT_ASSIGN_OR_RETURN(const JsonNode map, json.Field("auto_map"));
  ATTENDANT_RETURN_IF_ERROR(map.Read("AutoModel", code));
  return code;
}

absl::StatusOr<const Family*> FindFamily(const JsonNode& json) {
  std::string type;
  ATTENDANT_RETURN_IF_ERROR(json.Require("model_type", type));
  ATTENDANT_ASSIGN_OR_RETURN(const std::string code, ReadCode(json));
  const Family* family =
      code.empty() ? Find(&Family::model_types, type) : Find(&Family::code, code);
  if (family != nullptr) return family;
  if (!code.empty()) {
    return Unsupported(json, "auto_map", Quoted(code), "a model of transformers itself");
  }
  return Unsupported(json, "model_type", Quoted(type), AllModelTypes());
}

}  // namespace attendant
