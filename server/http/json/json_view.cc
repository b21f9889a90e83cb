// SPDX-License-Identifier: Apache-2.0
#include "server/http/json/json_view.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/http/json/big_integers.h"

namespace attendant {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

// What is touched: a text's strings are copied twice. A structural character stands for at most
// two places in an index (4 bytes each), a number (16) and its copy (8). What simdjson reserves is
// more, and its pages are never touched.
int64_t MemoryOf(int64_t text_bytes, int64_t structural) {
  constexpr int64_t kFixed = 4096;
  return kFixed + 2 * text_bytes + 32 * structural;
}

}  // namespace

struct JsonView::Access {
  static element Get(JsonView view) {
    element inner;
    std::memcpy(static_cast<void*>(&inner), view.element_, sizeof(inner));
    return inner;
  }
  static JsonView Make(element inner) {
    static_assert(sizeof(inner) == kElementBytes && std::is_trivially_copyable_v<element>);
    JsonView view;
    std::memcpy(view.element_, static_cast<const void*>(&inner), sizeof(inner));
    return view;
  }
};

JsonView::Kind JsonView::kind() const {
  switch (Access::Get(*this).type()) {
    case element_type::NULL_VALUE:
      return Kind::kNull;
    case element_type::BOOL:
      return Kind::kBool;
    case element_type::INT64:
      return Kind::kInteger;
    case element_type::UINT64:  // beyond 2^63; WidenIntegers makes larger ones doubles
    case element_type::DOUBLE:
      return Kind::kNumber;
    case element_type::STRING:
      return Kind::kString;
    case element_type::ARRAY:
      return Kind::kArray;
    case element_type::OBJECT:
      return Kind::kObject;
  }
  return Kind::kNull;
}

absl::string_view JsonView::kind_name() const {
  constexpr absl::string_view kNames[] = {"null",     "a boolean", "an integer", "a number",
                                          "a string", "an array",  "an object"};
  return kNames[static_cast<size_t>(kind())];
}

bool JsonView::Bool() const { return Access::Get(*this).get_bool().value_unsafe(); }

int64_t JsonView::Integer() const { return Access::Get(*this).get_int64().value_unsafe(); }

double JsonView::Number() const { return Access::Get(*this).get_double().value_unsafe(); }

absl::string_view JsonView::String() const {
  const std::string_view text = Access::Get(*this).get_string().value_unsafe();
  return {text.data(), text.size()};
}

absl::Status JsonView::ForEach(Visit visit) const {
  const simdjson::dom::array array = Access::Get(*this).get_array().value_unsafe();
  for (const element inner : array) {
    absl::Status status = visit(Access::Make(inner));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status JsonView::ForEachField(VisitField visit) const {
  const simdjson::dom::object object = Access::Get(*this).get_object().value_unsafe();
  for (const simdjson::dom::key_value_pair field : object) {
    absl::Status status = visit({field.key.data(), field.key.size()}, Access::Make(field.value));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

size_t JsonView::size() const { return Access::Get(*this).get_array().value_unsafe().size(); }

std::optional<JsonView> JsonView::Find(absl::string_view field) const {
  if (kind() != Kind::kObject) return std::nullopt;
  const std::string_view name(field.data(), field.size());
  std::optional<element> found;
  const simdjson::dom::object object = Access::Get(*this).get_object().value_unsafe();
  for (auto entry = object.begin(); entry != object.end(); ++entry) {
    if (entry.key_equals(name)) found = entry.value();
  }
  if (!found.has_value() || found->is_null()) return std::nullopt;
  return Access::Make(*found);
}

absl::Status JsonView::Read(absl::string_view field, bool& value) const {
  const std::optional<JsonView> found = Find(field);
  if (!found) return absl::OkStatus();
  if (found->kind() != Kind::kBool) return WrongJsonType(field, "a boolean", *found);
  value = found->Bool();
  return absl::OkStatus();
}

absl::Status JsonView::Read(absl::string_view field, int64_t& value) const {
  const std::optional<JsonView> found = Find(field);
  if (!found) return absl::OkStatus();
  if (found->kind() != Kind::kInteger) return WrongJsonType(field, "an integer", *found);
  value = found->Integer();
  return absl::OkStatus();
}

absl::Status JsonView::Read(absl::string_view field, std::string& value) const {
  const std::optional<JsonView> found = Find(field);
  if (!found) return absl::OkStatus();
  if (found->kind() != Kind::kString) return WrongJsonType(field, "a string", *found);
  value = std::string(found->String());
  return absl::OkStatus();
}

absl::Status WrongJsonType(absl::string_view field, absl::string_view expected, JsonView value) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be ", expected, ", not ", value.kind_name()));
}

struct JsonText::Impl {
  std::string text;
  simdjson::dom::parser parser;
  element root;
};

absl::StatusOr<JsonText> JsonText::Parse(std::string text) {
  constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";
  constexpr size_t kLeastCapacity = 64;
  auto impl = std::make_unique<Impl>();
  impl->text = std::move(text);
  impl->text.reserve(impl->text.size() + simdjson::SIMDJSON_PADDING);
  absl::string_view json = impl->text;
  absl::ConsumePrefix(&json, kByteOrderMark);
  simdjson::error_code error =
      impl->parser.allocate(std::max(json.size(), kLeastCapacity), static_cast<size_t>(kMaxDepth));
  if (error == simdjson::SUCCESS) {
    const auto parse = [&] {
      return impl->parser.parse(json.data(), json.size(), false).get(impl->root);
    };
    error = parse();
    if (error != simdjson::SUCCESS && WidenIntegers(impl->text)) error = parse();
  }
  if (error == simdjson::SUCCESS) return JsonText(std::move(impl));
  if (error == simdjson::DEPTH_ERROR) {
    return absl::InvalidArgumentError(
        absl::StrCat("the JSON is more than ", kMaxDepth, " levels deep"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the body is not valid JSON: ", simdjson::error_message(error)));
}

int64_t JsonText::MemoryBytes(absl::string_view text) {
  const auto is_structural = [](char c) {
    return c == ',' || c == '"' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}';
  };
  return MemoryOf(static_cast<int64_t>(text.size()),
                  std::count_if(text.begin(), text.end(), is_structural));
}

int64_t JsonText::MostMemoryBytes(int64_t text_bytes) { return MemoryOf(text_bytes, text_bytes); }

JsonText::JsonText(JsonText&&) noexcept = default;
JsonText& JsonText::operator=(JsonText&&) noexcept = default;
JsonText::~JsonText() = default;
JsonText::JsonText(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

JsonView JsonText::root() const { return JsonView::Access::Make(impl_->root); }

}  // namespace attendant
