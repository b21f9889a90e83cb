// SPDX-License-Identifier: Apache-2.0
#include "server/requests/only_model.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "server/requests/request_message.h"

namespace attendant {

absl::StatusOr<std::string> NamedOrOnlyModel(std::optional<absl::string_view> named,
                                             const ModelRegistry& models) {
  if (named.has_value()) return std::string(named->substr(0, kMaxIdBytes));
  std::set<std::string> names;
  for (const ModelStatus& status : models.List()) {
    if (!status.is_module) names.insert(status.name);
  }
  if (names.size() == 1) return *names.begin();
  return absl::InvalidArgumentError(absl::StrCat("the server has ", names.size(),
                                                 " models: name one in the header ", kModelHeader));
}

absl::StatusOr<std::shared_ptr<EncoderModel>> FindUnnamedModel(
    const RequestDependencies& dependencies, const RequestCall& call) {
  if (!call.model.empty()) return dependencies.models.Find(call.model);
  return absl::InvalidArgumentError(absl::StrCat(
      "the server has several models, or none: name one in the header ", kModelHeader));
}

}  // namespace attendant
