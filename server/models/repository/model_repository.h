// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/models/model_options.h"

namespace attendant {

// The models of a repository at a moment, by name.
struct RepositoryContent {
  struct Model {
    std::vector<ModelSource> versions;  // to serve, ascending; never empty
    std::string fingerprint;            // of their files: places, sizes and times
  };
  std::map<std::string, Model> models;
  std::map<std::string, absl::Status> refused;  // cannot be served (ModelRepository::Find)
  std::set<std::string> unreadable;             // those of them that may be as they were
};

// A folder of models:
//
//   NAME/config.json ...             version 1
//   NAME/VERSION/config.json ...     version VERSION, a decimal number from 1
//
// A model has one of the two forms; with config.json in NAME itself, its folders are not read. In
// place of config.json there may be a modules.json that names the encoder's folder.
// Names that begin with '.' are left alone. A symbolic link counts as what it leads to, but must
// not leave the repository. Every call reads the disk. Thread-safe.
class ModelRepository {
 public:
  // Serves the `versions` highest versions of each model. REQUIRES: versions >= 1.
  ModelRepository(std::string directory, int64_t versions);

  // Every folder that holds a version. UNAVAILABLE when the repository cannot be read now,
  // INVALID_ARGUMENT when it is a model's folder itself.
  absl::StatusOr<RepositoryContent> Read() const;

  // The versions to serve, ascending. INVALID_ARGUMENT for a name that cannot be served, NOT_FOUND
  // when there is no such model, PERMISSION_DENIED for one that lies outside the repository,
  // UNAVAILABLE when it cannot be read now.
  absl::StatusOr<std::vector<ModelSource>> Find(const std::string& name) const;

  const std::string& directory() const { return directory_; }

 private:
  // Selects the versions to serve from all versions of a model. PERMISSION_DENIED as Find.
  absl::StatusOr<std::vector<ModelSource>> Choose(std::vector<ModelSource> sources) const;

  const std::string directory_;
  const int64_t versions_;
};

}  // namespace attendant
