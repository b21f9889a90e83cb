// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Limits of a JSON text: beyond any of them it is refused.
struct JsonLimits {
  int64_t max_bytes = int64_t{16} << 20;
  int64_t max_values = int64_t{4} << 20;  // objects, arrays and scalars together
  int64_t max_depth = 32;
};

// A value inside a parsed JSON text, and the place it has there: every error names the file and the
// field. Cheap to copy; copies share the text's values. Immutable, thread-safe.
//
// A field that is null counts as absent. Errors are INVALID_ARGUMENT.
class JsonNode {
 public:
  // "model/config.json", "model/modules.json: [2].`type`".
  std::string where() const;

  bool IsObject() const;
  bool IsArray() const;

  // The value itself. An integer has neither fraction nor exponent and fits in 64 bits; a number
  // may be an integer.
  absl::Status Get(bool& value) const;
  absl::Status Get(int64_t& value) const;
  absl::Status Get(double& value) const;
  absl::Status Get(std::string& value) const;

  // A field of this object. Read leaves `value` as it is when the field is absent, Require refuses
  // that.
  template <typename T>
  absl::Status Read(absl::string_view field, T& value) const {
    return Has(field) ? Require(field, value) : CheckObject();
  }
  template <typename T>
  absl::Status Require(absl::string_view field, T& value) const {
    absl::StatusOr<JsonNode> node = Field(field);
    return node.ok() ? node->Get(value) : node.status();
  }

  bool Has(absl::string_view field) const;     // false for all but objects, and for null
  bool IsNull(absl::string_view field) const;  // the field is there, with null
  absl::StatusOr<JsonNode> Field(absl::string_view field) const;
  absl::StatusOr<std::vector<std::string>> FieldNames() const;  // sorted
  absl::StatusOr<std::vector<JsonNode>> Elements() const;       // of an array

 private:
  struct Value;
  struct Member;
  struct Document;
  class Builder;
  friend absl::StatusOr<JsonNode> ParseJson(absl::string_view, const std::string&,
                                            const JsonLimits&);

  JsonNode(std::shared_ptr<const Document> document, const Value* value, std::string path);
  absl::Status CheckObject() const;
  absl::Status WrongType(absl::string_view expected) const;
  const Value* Find(absl::string_view field) const;

  std::shared_ptr<const Document> document_;
  const Value* value_;
  std::string path_;  // inside the document, "" for all of it
};

// Strict JSON in UTF-8: no comments, no NaN, no field twice in an object. `name` stands in the
// errors.
absl::StatusOr<JsonNode> ParseJson(absl::string_view text, const std::string& name,
                                   const JsonLimits& limits = {});

// NOT_FOUND when there is no such file; INVALID_ARGUMENT when it is not a regular file, or not
// valid.
absl::StatusOr<JsonNode> ReadJsonFile(const std::string& path, const JsonLimits& limits = {});

}  // namespace attendant
