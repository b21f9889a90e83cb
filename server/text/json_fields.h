// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// A JSON object of a file, with its place in it, whose members are read with their types checked.
// All the objects of a file share one status, which keeps the first failure; what could not be read
// is empty. So a reader asks for all that it needs and looks at the status once.
class JsonFields {
 public:
  // The file's outermost object. Views `object` and `status`.
  JsonFields(const nlohmann::json& object, absl::Status& status);

  bool ok() const { return status_.ok(); }

  // The member is there, and not null.
  bool Has(const std::string& key) const;

  // INVALID_ARGUMENT, naming the member, when it is missing or something else.
  bool Bool(const std::string& key) const;
  std::string String(const std::string& key) const;
  int64_t Integer(const std::string& key, int64_t max) const;  // in [0, max]
  const nlohmann::json& Array(const std::string& key) const;
  JsonFields Object(const std::string& key) const;

  // Element `index` of the array `key`.
  JsonFields Object(const std::string& key, size_t index) const;
  int64_t Integer(const std::string& key, size_t index, int64_t max) const;

  const nlohmann::json& value() const { return object_; }
  std::string PathOf(const std::string& key) const;
  std::string PathOf(const std::string& key, size_t index) const;

  // INVALID_ARGUMENT: the member `key` has a `problem`.
  void Fail(const std::string& key, absl::string_view problem) const;
  void Fail(const absl::Status& failure) const;

 private:
  JsonFields(const nlohmann::json& object, std::string path, absl::Status& status);

  const nlohmann::json& Member(const std::string& key) const;
  const nlohmann::json& Element(const std::string& key, size_t index) const;
  int64_t CheckInteger(const nlohmann::json& value, const std::string& path, int64_t max) const;

  const nlohmann::json& object_;
  std::string path_;
  absl::Status& status_;
};

}  // namespace attendant
