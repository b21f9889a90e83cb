// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/flags.h"
#include "server/models/model_options.h"
#include "server/models/registry/registry_options.h"
#include "server/models/repository/model_repository.h"

namespace attendant {

// The models that the flags name.
struct ModelSources {
  std::vector<ModelSource> fixed{};  // of --model
  RepositoryContent repository{};    // of --model_repository, as it was when the flags were read

  std::vector<ModelSource> InRepository() const;  // each version of each model
};

// INVALID_ARGUMENT for what is not NAME=DIR, a name that cannot be served (CheckModelName), two
// models of one name, a repository that is a model itself, or, when models cannot come later, one
// without a model that can be served, and an adapter or a weight for a model that is not there.
// UNAVAILABLE for a repository that cannot be read now.
absl::StatusOr<ModelSources> CollectModels(const ServerFlags& flags);

// The weights by model. INVALID_ARGUMENT for what is not NAME=WEIGHT, a weight that is not from
// 0.01 to 100, or two weights of one name.
absl::StatusOr<absl::flat_hash_map<std::string, double>> ReadModelWeights(const ServerFlags& flags);

// The adapters by model. INVALID_ARGUMENT for what is not NAME=ADAPTER, or two of one name.
absl::StatusOr<absl::flat_hash_map<std::string, std::string>> ReadModelAdapters(
    const ServerFlags& flags);

// The repository that the flags name, if they name one.
std::optional<ModelRepository> MakeRepository(const ServerFlags& flags);

// Finds a fixed model, else one in the repository as it is then. `repository`, null for none, must
// outlive the finder.
ModelFinder MakeFinder(std::vector<ModelSource> fixed, const ModelRepository* repository);

// The fingerprint of a model's folder now; empty while its files cannot be listed.
std::string FingerprintOf(const ModelSource& source);

}  // namespace attendant
