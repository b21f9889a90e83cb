// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/models/model_options.h"

namespace attendant {

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
  // Of each model, the `versions` highest versions are served. REQUIRES: at least 1.
  ModelRepository(std::string directory, int64_t versions);

  // The names of the folders that hold a version, sorted, also such that cannot be served.
  // INVALID_ARGUMENT when the repository cannot be read, or is a model's folder itself.
  absl::StatusOr<std::vector<std::string>> Names() const;

  // The versions to serve, ascending. INVALID_ARGUMENT for a name that cannot be served, NOT_FOUND
  // when there is no such model, PERMISSION_DENIED for one that lies outside the repository.
  absl::StatusOr<std::vector<ModelSource>> Find(const std::string& name) const;

  // A fingerprint of the model's files: places, sizes and times. Errors as Find's.
  absl::StatusOr<std::string> Fingerprint(const std::string& name) const;

  const std::string& directory() const { return directory_; }

 private:
  const std::string directory_;
  const int64_t versions_;
};

}  // namespace attendant
