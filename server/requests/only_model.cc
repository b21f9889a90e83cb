// SPDX-License-Identifier: Apache-2.0
#include "server/requests/only_model.h"

#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"
#include "kernels/heads/head.h"
#include "server/requests/request_message.h"

namespace attendant {
namespace {

bool Has(const EncoderFacts& model, TaskKind kind) {
  return model.task_columns[static_cast<size_t>(kind)].has_value();
}

}  // namespace

bool AnyEncoder(const EncoderFacts& /*model*/) { return true; }
bool TakesText(const EncoderFacts& model) { return model.takes_text; }
bool Embeds(const EncoderFacts& model) {
  return model.labels == 0 && !model.splade && !Has(model, TaskKind::kTokenScores);
}
bool EmbedsSparsely(const EncoderFacts& model) { return Has(model, TaskKind::kSparse); }
bool Classifies(const EncoderFacts& model) { return model.labels > 0; }
bool Ranks(const EncoderFacts& model) {
  if (model.labels > 0) return model.labels == 1;
  return model.takes_text && Has(model, TaskKind::kMultiVector);
}

bool MayBeMeant(const ModelStatus& status, ModelNeed need) {
  const ModelState state = status.state;
  if (state == ModelState::kUnloaded || state == ModelState::kUnloading) return false;
  return !status.facts.has_value() || need(*status.facts);
}

absl::StatusOr<std::string> NamedOrOnlyModel(std::optional<absl::string_view> named,
                                             const ModelRegistry& models, ModelNeed need) {
  if (named.has_value()) return std::string(named->substr(0, kMaxIdBytes));
  std::set<std::string> names, fitting;
  for (const ModelStatus& status : models.List()) {
    if (status.is_module) continue;
    names.insert(status.name);
    if (MayBeMeant(status, need)) fitting.insert(status.name);
  }
  if (names.size() == 1) return *names.begin();
  if (fitting.size() == 1) return *fitting.begin();
  return absl::InvalidArgumentError(
      absl::StrCat("the server has ", names.size(), " models, of which ", fitting.size(),
                   " may answer this: name one in the header ", kModelHeader));
}

absl::StatusOr<std::shared_ptr<EncoderModel>> FindUnnamedModel(
    const RequestDependencies& dependencies, const RequestCall& call) {
  if (!call.model.empty()) return dependencies.models.Find(call.model);
  return absl::InvalidArgumentError(
      absl::StrCat("the server has several models that may answer this, or none: name one in the "
                   "header ",
                   kModelHeader));
}

}  // namespace attendant
