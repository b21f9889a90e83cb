// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/io/json_file.h"

namespace attendant {

// An element of an array: a string, or an array of a string and a second value.
class JsonArrayItem {
 public:
  const std::string& path() const { return path_; }
  bool IsString() const;
  // INVALID_ARGUMENT, naming the element, when it is of another type.
  std::string String() const;
  std::string String(size_t index) const;
  double Number(size_t index) const;
  void Fail(absl::string_view problem) const;

 private:
  friend class JsonFields;
  JsonArrayItem(JsonNode node, std::string path, absl::Status& status);
  std::vector<JsonNode> Pair() const;

  JsonNode node_;
  std::string path_;
  absl::Status* status_;
};

// A JSON object of a file, with its place in it, whose members are read with their types checked.
// All the objects of a file share one status, which keeps the first failure; a member that could
// not be read is empty. So a reader asks for all that it needs and looks at the status once.
class JsonFields {
 public:
  // The file's outermost object. Views `status`.
  JsonFields(const JsonNode& file, absl::Status& status) : JsonFields(file, "", status) {}

  bool ok() const { return status_.ok(); }

  // The member is there, and not null.
  bool Has(absl::string_view key) const { return object_.has_value() && object_->Has(key); }
  std::vector<std::string> Keys() const;

  // INVALID_ARGUMENT, naming the member, when it is missing or of another type.
  bool Bool(absl::string_view key) const;
  std::string String(absl::string_view key) const;
  int64_t Integer(absl::string_view key, int64_t max) const;  // in [0, max]
  double Number(absl::string_view key) const;
  JsonFields Object(absl::string_view key) const;
  std::vector<JsonFields> Objects(absl::string_view key) const;             // of an array
  std::vector<int64_t> Integers(absl::string_view key, int64_t max) const;  // of an array
  int64_t Integer(absl::string_view key, size_t index, int64_t max) const;  // of an array
  std::vector<JsonArrayItem> Items(absl::string_view key) const;            // of an array
  std::string PathOf(absl::string_view key) const;

  // INVALID_ARGUMENT: the member `key` has a `problem`.
  void Fail(absl::string_view key, absl::string_view problem) const;
  void Fail(const absl::Status& failure) const { status_.Update(failure); }

 private:
  JsonFields(const std::optional<JsonNode>& node, std::string path, absl::Status& status);

  std::optional<JsonNode> Member(absl::string_view key) const;
  std::vector<JsonNode> Elements(absl::string_view key) const;
  std::string PathOf(absl::string_view key, size_t index) const;
  int64_t CheckInteger(const std::optional<JsonNode>& node, const std::string& path,
                       int64_t max) const;

  std::optional<JsonNode> object_;
  std::string path_;
  absl::Status& status_;
};

}  // namespace attendant
