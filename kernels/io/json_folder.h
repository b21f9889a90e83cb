// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/io/json_file.h"

namespace attendant {

// The JSON files of a folder and of the folders in it. A file is read when it is first asked for,
// and never again: the first answer, also that it is not there or not valid, holds for this folder,
// its copies and those of At(). So who reads a folder in many places sees one state of each file.
// Cheap to copy. The copies are for one thread at a time.
class JsonFolder {
 public:
  // Implicit: who takes a folder takes its path as well.
  JsonFolder(std::string path);

  const std::string& path() const { return path_; }
  // "1_Pooling"; "" is this folder.
  JsonFolder At(absl::string_view folder) const;

  // Errors are those of ReadJsonFile.
  absl::StatusOr<JsonNode> Read(absl::string_view file) const;
  // Unset: there is no such file.
  absl::StatusOr<std::optional<JsonNode>> Find(absl::string_view file) const;
  // An object without fields: there is no such file.
  absl::StatusOr<JsonNode> ReadOrEmpty(absl::string_view file) const;

 private:
  struct Documents;

  std::string path_;
  std::shared_ptr<Documents> documents_;
};

}  // namespace attendant
