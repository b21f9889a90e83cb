// SPDX-License-Identifier: Apache-2.0
#include "server/model_sources.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/models/attention_model.h"
#include "server/rpc/kserve/models.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNameBytes = 128;

absl::StatusOr<ModelSource> ParseModel(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  if (parts.first.empty() || parts.second.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model cannot be '", text, "': give NAME=DIR"));
  }
  return ModelSource{.name = parts.first, .directory = parts.second};
}

absl::Status AddRepository(const std::string& repository, std::vector<ModelSource>& sources) {
  std::error_code error;
  std::vector<ModelSource> found;
  for (fs::directory_iterator entry(repository, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code absent;
    if (fs::is_regular_file(entry->path() / "config.json", absent)) {
      found.push_back({entry->path().filename().string(), entry->path().string()});
    }
  }
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model_repository '", repository, "': ", error.message()));
  }
  if (found.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model_repository '", repository, "' has no folder with a config.json"));
  }
  std::sort(found.begin(), found.end(),
            [](const ModelSource& a, const ModelSource& b) { return a.name < b.name; });
  std::move(found.begin(), found.end(), std::back_inserter(sources));
  return absl::OkStatus();
}

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

absl::Status CheckName(const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes ||
      !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model name ", Quote(name), " of ", name.size(), " bytes cannot be served: use 1 to ",
        kMaxNameBytes, " letters, digits, '_', '-' and '.'"));
  }
  if (name == kAttentionName) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model name ", Quote(name),
        " cannot be served: the attention operators that need no model are called so"));
  }
  if (SplitServedName(name).second != ServedName::kText) {
    return absl::InvalidArgumentError(
        absl::StrCat("model name ", Quote(name),
                     " cannot be served: NAME.ids and NAME.encoder are "
                     "what KServe clients call other outputs of a model NAME"));
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const std::vector<ModelSource>& sources) {
  absl::flat_hash_set<std::string> names;
  for (const ModelSource& source : sources) {
    ATTENDANT_RETURN_IF_ERROR(CheckName(source.name));
    if (!names.insert(source.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two models would be served as '", source.name, "'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ModelSource>> CollectModels(std::span<const std::string> models,
                                                       const std::string& repository) {
  std::vector<ModelSource> sources;
  for (const std::string& text : models) {
    ATTENDANT_ASSIGN_OR_RETURN(ModelSource source, ParseModel(text));
    sources.push_back(std::move(source));
  }
  if (!repository.empty()) ATTENDANT_RETURN_IF_ERROR(AddRepository(repository, sources));
  ATTENDANT_RETURN_IF_ERROR(CheckNames(sources));
  return sources;
}

}  // namespace attendant
