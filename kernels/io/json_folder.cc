// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/json_folder.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"

namespace attendant {

struct JsonFolder::Documents {
  std::map<std::string, absl::StatusOr<JsonNode>> by_path;
};

JsonFolder::JsonFolder(std::string path)
    : path_(std::move(path)), documents_(std::make_shared<Documents>()) {}

JsonFolder JsonFolder::At(absl::string_view folder) const {
  JsonFolder inner = *this;
  if (!folder.empty()) absl::StrAppend(&inner.path_, "/", folder);
  return inner;
}

absl::StatusOr<JsonNode> JsonFolder::Read(absl::string_view file) const {
  std::string path = absl::StrCat(path_, "/", file);
  const auto known = documents_->by_path.find(path);
  if (known != documents_->by_path.end()) return known->second;
  absl::StatusOr<JsonNode> document = ReadJsonFile(path);
  return documents_->by_path.emplace(std::move(path), std::move(document)).first->second;
}

absl::StatusOr<std::optional<JsonNode>> JsonFolder::Find(absl::string_view file) const {
  absl::StatusOr<JsonNode> document = Read(file);
  if (absl::IsNotFound(document.status())) return std::nullopt;
  ATTENDANT_RETURN_IF_ERROR(document);
  return std::optional(*std::move(document));
}

absl::StatusOr<JsonNode> JsonFolder::ReadOrEmpty(absl::string_view file) const {
  absl::StatusOr<JsonNode> document = Read(file);
  if (!absl::IsNotFound(document.status())) return document;
  return ParseJson("{}", absl::StrCat(path_, "/", file));
}

}  // namespace attendant
