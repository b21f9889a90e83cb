// SPDX-License-Identifier: Apache-2.0
#include "server/text/json_fields.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

using nlohmann::json;

const json& Nothing() {
  static const json nothing;
  return nothing;
}

}  // namespace

JsonFields::JsonFields(const json& object, absl::Status& status) : JsonFields(object, "", status) {}

JsonFields::JsonFields(const json& object, std::string path, absl::Status& status)
    : object_(object), path_(std::move(path)), status_(status) {
  if (object.is_object()) return;
  const absl::string_view name = path_.empty() ? absl::string_view("the file") : path_;
  Fail(absl::InvalidArgumentError(absl::StrCat(name, " is not an object")));
}

bool JsonFields::Has(const std::string& key) const { return !Member(key).is_null(); }

bool JsonFields::Bool(const std::string& key) const {
  const json& value = Member(key);
  if (value.is_boolean()) return value.get<bool>();
  Fail(key, "is not true or false");
  return false;
}

std::string JsonFields::String(const std::string& key) const {
  const json& value = Member(key);
  if (value.is_string()) return value.get<std::string>();
  Fail(key, "is not a string");
  return "";
}

int64_t JsonFields::Integer(const std::string& key, int64_t max) const {
  return CheckInteger(Member(key), PathOf(key), max);
}

int64_t JsonFields::Integer(const std::string& key, size_t index, int64_t max) const {
  return CheckInteger(Element(key, index), PathOf(key, index), max);
}

const json& JsonFields::Array(const std::string& key) const {
  const json& value = Member(key);
  if (value.is_array()) return value;
  Fail(key, "is not an array");
  return Nothing();
}

JsonFields JsonFields::Object(const std::string& key) const {
  return JsonFields(Member(key), PathOf(key), status_);
}

JsonFields JsonFields::Object(const std::string& key, size_t index) const {
  return JsonFields(Element(key, index), PathOf(key, index), status_);
}

std::string JsonFields::PathOf(const std::string& key) const {
  return path_.empty() ? key : absl::StrCat(path_, ".", key);
}

std::string JsonFields::PathOf(const std::string& key, size_t index) const {
  return absl::StrCat(PathOf(key), "[", index, "]");
}

void JsonFields::Fail(const std::string& key, absl::string_view problem) const {
  if (!ok()) return;  // a message costs more than the check
  Fail(absl::InvalidArgumentError(absl::StrCat(PathOf(key), " ", problem)));
}

void JsonFields::Fail(const absl::Status& failure) const { status_.Update(failure); }

const json& JsonFields::Member(const std::string& key) const {
  if (!object_.is_object()) return Nothing();
  const auto found = object_.find(key);
  return found == object_.end() ? Nothing() : *found;
}

const json& JsonFields::Element(const std::string& key, size_t index) const {
  const json& array = Member(key);
  return array.is_array() && index < array.size() ? array[index] : Nothing();
}

int64_t JsonFields::CheckInteger(const json& value, const std::string& path, int64_t max) const {
  if (value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(max)) {
    return value.get<int64_t>();
  }
  Fail(absl::InvalidArgumentError(absl::StrCat(path, " is not a whole number from 0 to ", max)));
  return 0;
}

}  // namespace attendant
