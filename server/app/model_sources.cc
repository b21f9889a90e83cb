// SPDX-License-Identifier: Apache-2.0
#include "server/app/model_sources.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/models/model_name.h"
#include "server/models/repository/folder_fingerprint.h"

namespace attendant {
namespace {

absl::Status TwoModels(const std::string& name) {
  return absl::InvalidArgumentError(absl::StrCat("two models would be served as '", name, "'"));
}

absl::StatusOr<ModelSource> ParseModel(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  if (parts.first.empty() || parts.second.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model cannot be '", text, "': give NAME=DIR"));
  }
  return ModelSource{.name = parts.first, .directory = parts.second};
}

absl::Status NoModel(const RepositoryContent& content) {
  if (!content.refused.empty()) return content.refused.begin()->second;
  return absl::NotFoundError("it has no folder with a config.json");
}

absl::Status CheckNames(const ModelSources& sources) {
  absl::flat_hash_set<std::string> names;
  for (const ModelSource& source : sources.fixed) {
    ATTENDANT_RETURN_IF_ERROR(CheckModelName(source.name));
    if (!names.insert(source.name).second) return TwoModels(source.name);
  }
  for (const auto& [name, model] : sources.repository.models) {
    if (names.contains(name)) return TwoModels(name);
  }
  return absl::OkStatus();
}

// The setting of no model would leave the model that is meant without it. `settings`: by model.
template <typename Settings>
absl::Status CheckModelsOf(const char* flag, const Settings& settings,
                           const ModelSources& sources) {
  absl::flat_hash_set<std::string> names;
  for (const ModelSource& source : sources.fixed) names.insert(source.name);
  for (const auto& [name, setting] : settings) {
    if (names.contains(name) || sources.repository.models.contains(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(flag, ": there is no model ", Quote(name)));
  }
  return absl::OkStatus();
}

absl::Status WithFlag(const ServerFlags& flags, const absl::Status& status) {
  const bool may_pass = absl::IsUnavailable(status);
  return absl::Status(
      may_pass ? absl::StatusCode::kUnavailable : absl::StatusCode::kInvalidArgument,
      absl::StrCat("--model_repository '", flags.model_repository, "': ", status.message()));
}

}  // namespace

std::vector<ModelSource> ModelSources::InRepository() const {
  std::vector<ModelSource> all;
  for (const auto& [name, model] : repository.models) {
    all.insert(all.end(), model.versions.begin(), model.versions.end());
  }
  return all;
}

absl::StatusOr<ModelSources> CollectModels(const ServerFlags& flags) {
  ModelSources sources;
  for (const std::string& text : flags.models) {
    ATTENDANT_ASSIGN_OR_RETURN(ModelSource source, ParseModel(text));
    sources.fixed.push_back(std::move(source));
  }
  if (const std::optional<ModelRepository> repository = MakeRepository(flags)) {
    absl::StatusOr<RepositoryContent> content = repository->Read();
    if (!content.ok()) return WithFlag(flags, content.status());
    if (content->models.empty() && flags.model_control == ModelControl::kNone) {
      return WithFlag(flags, NoModel(*content));
    }
    sources.repository = *std::move(content);
  }
  ATTENDANT_RETURN_IF_ERROR(CheckNames(sources));
  if (flags.model_control == ModelControl::kNone) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto adapters, ReadModelAdapters(flags));
    ATTENDANT_RETURN_IF_ERROR(CheckModelsOf("--model_adapter", adapters, sources));
    ATTENDANT_ASSIGN_OR_RETURN(const auto weights, ReadModelWeights(flags));
    ATTENDANT_RETURN_IF_ERROR(CheckModelsOf("--model_weight", weights, sources));
  }
  return sources;
}

absl::StatusOr<absl::flat_hash_map<std::string, double>> ReadModelWeights(
    const ServerFlags& flags) {
  absl::flat_hash_map<std::string, double> weights;
  for (const std::string& text : flags.model_weights) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    double weight = 0;
    const bool in_range =
        absl::SimpleAtod(parts.second, &weight) && weight >= 0.01 && weight <= 100;
    if (parts.first.empty() || !in_range) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--model_weight cannot be '", text, "': give NAME=WEIGHT, a weight from 0.01 to 100"));
    }
    if (!weights.emplace(parts.first, weight).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--model_weight: two weights for ", Quote(parts.first)));
    }
  }
  return weights;
}

absl::StatusOr<absl::flat_hash_map<std::string, std::string>> ReadModelAdapters(
    const ServerFlags& flags) {
  absl::flat_hash_map<std::string, std::string> adapters;
  for (const std::string& text : flags.model_adapters) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (parts.first.empty() || parts.second.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--model_adapter cannot be '", text, "': give NAME=ADAPTER"));
    }
    if (!adapters.insert(parts).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--model_adapter: two adapters for ", Quote(parts.first)));
    }
  }
  return adapters;
}

std::optional<ModelRepository> MakeRepository(const ServerFlags& flags) {
  if (flags.model_repository.empty()) return std::nullopt;
  return ModelRepository(flags.model_repository, flags.max_model_versions);
}

ModelFinder MakeFinder(std::vector<ModelSource> fixed, const ModelRepository* repository) {
  return [fixed = std::move(fixed),
          repository](const std::string& name) -> absl::StatusOr<std::vector<ModelSource>> {
    for (const ModelSource& source : fixed) {
      if (source.name == name) return std::vector<ModelSource>{source};
    }
    if (repository != nullptr) return repository->Find(name);
    return absl::NotFoundError(absl::StrCat("there is no model ", Quote(name)));
  };
}

std::string FingerprintOf(const ModelSource& source) {
  return FolderFingerprint(source.directory).value_or("");
}

}  // namespace attendant
