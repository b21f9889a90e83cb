// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/json_fields.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text/unicode/readable.h"

namespace attendant {
namespace {

constexpr size_t kMaxKeyBytes = 100;

}  // namespace

JsonFields::JsonFields(const std::optional<JsonNode>& node, std::string path, absl::Status& status)
    : path_(std::move(path)), status_(status) {
  if (node.has_value() && node->IsObject()) {
    object_ = node;
  } else {
    const absl::string_view name = path_.empty() ? absl::string_view("the file") : path_;
    Fail(absl::InvalidArgumentError(absl::StrCat(name, " is not an object")));
  }
}

std::vector<std::string> JsonFields::Keys() const {
  return object_.has_value() ? *object_->FieldNames() : std::vector<std::string>();
}

bool JsonFields::Bool(absl::string_view key) const {
  bool value = false;
  const std::optional<JsonNode> member = Member(key);
  if (!member.has_value() || !member->Get(value).ok()) Fail(key, "is not true or false");
  return value;
}

std::string JsonFields::String(absl::string_view key) const {
  std::string value;
  const std::optional<JsonNode> member = Member(key);
  if (!member.has_value() || !member->Get(value).ok()) Fail(key, "is not a string");
  return value;
}

int64_t JsonFields::Integer(absl::string_view key, int64_t max) const {
  return CheckInteger(Member(key), PathOf(key), max);
}

double JsonFields::Number(absl::string_view key) const {
  double value = 0;
  const std::optional<JsonNode> member = Member(key);
  if (!member.has_value() || !member->Get(value).ok()) Fail(key, "is not a number");
  return value;
}

JsonFields JsonFields::Object(absl::string_view key) const {
  return JsonFields(Member(key), PathOf(key), status_);
}

std::vector<JsonFields> JsonFields::Objects(absl::string_view key) const {
  std::vector<JsonFields> objects;
  for (const JsonNode& element : Elements(key)) {
    objects.push_back(JsonFields(element, PathOf(key, objects.size()), status_));
  }
  return objects;
}

std::vector<int64_t> JsonFields::Integers(absl::string_view key, int64_t max) const {
  std::vector<int64_t> values;
  for (const JsonNode& element : Elements(key)) {
    values.push_back(CheckInteger(element, PathOf(key, values.size()), max));
  }
  return values;
}

int64_t JsonFields::Integer(absl::string_view key, size_t index, int64_t max) const {
  const std::vector<JsonNode> elements = Elements(key);
  const auto element = index < elements.size() ? std::optional(elements[index]) : std::nullopt;
  return CheckInteger(element, PathOf(key, index), max);
}

std::vector<JsonArrayItem> JsonFields::Items(absl::string_view key) const {
  std::vector<JsonArrayItem> items;
  for (const JsonNode& element : Elements(key)) {
    items.push_back(JsonArrayItem(element, PathOf(key, items.size()), status_));
  }
  return items;
}

std::string JsonFields::PathOf(absl::string_view key) const {
  const std::string name = Readable(key, kMaxKeyBytes);
  return path_.empty() ? name : absl::StrCat(path_, ".", name);
}

std::string JsonFields::PathOf(absl::string_view key, size_t index) const {
  return absl::StrCat(PathOf(key), "[", index, "]");
}

void JsonFields::Fail(absl::string_view key, absl::string_view problem) const {
  Fail(absl::InvalidArgumentError(absl::StrCat(PathOf(key), " ", problem)));
}

std::optional<JsonNode> JsonFields::Member(absl::string_view key) const {
  if (!Has(key)) return std::nullopt;
  return *object_->Field(key);
}

std::vector<JsonNode> JsonFields::Elements(absl::string_view key) const {
  const std::optional<JsonNode> member = Member(key);
  if (member.has_value() && member->IsArray()) return *member->Elements();
  Fail(key, "is not an array");
  return {};
}

int64_t JsonFields::CheckInteger(const std::optional<JsonNode>& node, const std::string& path,
                                 int64_t max) const {
  int64_t value = 0;
  if (node.has_value() && node->Get(value).ok() && value >= 0 && value <= max) return value;
  Fail(absl::InvalidArgumentError(absl::StrCat(path, " is not a whole number from 0 to ", max)));
  return 0;
}

JsonArrayItem::JsonArrayItem(JsonNode node, std::string path, absl::Status& status)
    : node_(std::move(node)), path_(std::move(path)), status_(&status) {}

bool JsonArrayItem::IsString() const {
  std::string value;
  return node_.Get(value).ok();
}

std::string JsonArrayItem::String() const {
  std::string value;
  if (!node_.Get(value).ok()) Fail("is not a string");
  return value;
}

std::string JsonArrayItem::String(size_t index) const {
  std::string value;
  const std::vector<JsonNode> pair = Pair();
  if (pair.empty() || !pair[index].Get(value).ok()) {
    Fail(absl::StrCat("has no string at [", index, "]"));
  }
  return value;
}

double JsonArrayItem::Number(size_t index) const {
  double value = 0;
  const std::vector<JsonNode> pair = Pair();
  if (pair.empty() || !pair[index].Get(value).ok()) {
    Fail(absl::StrCat("has no number at [", index, "]"));
  }
  return value;
}

void JsonArrayItem::Fail(absl::string_view problem) const {
  status_->Update(absl::InvalidArgumentError(absl::StrCat(path_, " ", problem)));
}

// Empty when it is none.
std::vector<JsonNode> JsonArrayItem::Pair() const {
  if (!node_.IsArray()) return {};
  std::vector<JsonNode> elements = *node_.Elements();
  return elements.size() == 2 ? elements : std::vector<JsonNode>();
}

}  // namespace attendant
