// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/json_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"

namespace attendant {

struct JsonNode::Value {
  std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<Value>,
               std::vector<Member>>
      data;
};

struct JsonNode::Member {
  std::string name;
  Value value;
};

struct JsonNode::Document {
  std::string name;
  Value root;
};

// Receives the parser's events. The parser keeps no stack of calls, so depth costs it nothing; the
// limit is for the tree built here, whose destructor recurses.
class JsonNode::Builder {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  Value TakeRoot() { return std::move(root_); }
  const std::string& error() const { return error_; }

  bool null() { return Add(Value{}); }
  bool boolean(bool value) { return Add(Value{value}); }
  bool number_integer(int64_t value) { return Add(Value{value}); }
  bool number_unsigned(uint64_t value) {
    // Only what does not fit arrives here above the signed range: as a number it is no integer.
    return value <= INT64_MAX ? Add(Value{static_cast<int64_t>(value)})
                              : Add(Value{static_cast<double>(value)});
  }
  bool number_float(double value, const std::string&) { return Add(Value{value}); }
  bool string(std::string& value) { return Add(Value{std::move(value)}); }
  bool binary(nlohmann::json::binary_t&) { return Fail("binary value"); }

  bool start_object(size_t) { return Open(Value{std::vector<Member>{}}); }
  bool start_array(size_t) { return Open(Value{std::vector<Value>{}}); }
  bool key(std::string& name) {
    keys_.push_back(std::move(name));
    return true;
  }
  bool end_object() {
    auto& members = std::get<std::vector<Member>>(open_.back().data);
    std::sort(members.begin(), members.end(),
              [](const Member& a, const Member& b) { return a.name < b.name; });
    auto twice = std::adjacent_find(members.begin(), members.end(),
                                    [](const auto& a, const auto& b) { return a.name == b.name; });
    if (twice != members.end())
      return Fail(absl::StrCat("field ", Quoted(twice->name), " occurs twice"));
    return Close();
  }
  bool end_array() { return Close(); }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& what) {
    // The parser's message repeats the token it stumbled over, however long that is.
    return Fail(absl::StrCat("not valid JSON at byte ", byte, ": ", Quoted(what.what())));
  }

 private:
  bool Fail(std::string message) {
    error_ = std::move(message);
    return false;
  }

  bool Count() {
    if (++values_ <= limits_.max_values) return true;
    return Fail(absl::StrCat("more values than the limit of ", limits_.max_values));
  }

  bool Open(Value container) {
    if (!Count()) return false;
    if (static_cast<int64_t>(open_.size()) >= limits_.max_depth) {
      return Fail(absl::StrCat("nested deeper than the limit of ", limits_.max_depth));
    }
    open_.push_back(std::move(container));
    return true;
  }

  bool Close() {
    Value container = std::move(open_.back());
    open_.pop_back();
    Place(std::move(container));
    return true;
  }

  bool Add(Value value) {
    if (!Count()) return false;
    Place(std::move(value));
    return true;
  }

  void Place(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* array = std::get_if<std::vector<Value>>(&open_.back().data)) {
      array->push_back(std::move(value));
    } else {
      auto& members = std::get<std::vector<Member>>(open_.back().data);
      members.push_back(Member{std::move(keys_.back()), std::move(value)});
      keys_.pop_back();
    }
  }

  const JsonLimits& limits_;
  int64_t values_ = 0;
  std::vector<Value> open_;        // containers not yet closed, outermost first
  std::vector<std::string> keys_;  // names waiting for their value
  Value root_;
  std::string error_;
};

JsonNode::JsonNode(std::shared_ptr<const Document> document, const Value* value, std::string path)
    : document_(std::move(document)), value_(value), path_(std::move(path)) {}

std::string JsonNode::where() const {
  return path_.empty() ? document_->name : absl::StrCat(document_->name, ": ", path_);
}

bool JsonNode::IsObject() const {
  return std::holds_alternative<std::vector<Member>>(value_->data);
}

bool JsonNode::IsArray() const { return std::holds_alternative<std::vector<Value>>(value_->data); }

absl::Status JsonNode::WrongType(absl::string_view expected) const {
  constexpr const char* kNames[] = {"null",     "a boolean", "an integer", "a number",
                                    "a string", "an array",  "an object"};
  return absl::InvalidArgumentError(
      absl::StrCat(where(), " is ", kNames[value_->data.index()], ", expected ", expected));
}

absl::Status JsonNode::CheckObject() const {
  return IsObject() ? absl::OkStatus() : WrongType("an object");
}

absl::Status JsonNode::Get(bool& value) const {
  const bool* found = std::get_if<bool>(&value_->data);
  if (found == nullptr) return WrongType("a boolean");
  value = *found;
  return absl::OkStatus();
}

absl::Status JsonNode::Get(int64_t& value) const {
  const int64_t* found = std::get_if<int64_t>(&value_->data);
  if (found == nullptr) return WrongType("an integer of 64 bits");
  value = *found;
  return absl::OkStatus();
}

absl::Status JsonNode::Get(double& value) const {
  if (const auto* integer = std::get_if<int64_t>(&value_->data)) {
    value = static_cast<double>(*integer);
    return absl::OkStatus();
  }
  const double* found = std::get_if<double>(&value_->data);
  if (found == nullptr) return WrongType("a number");
  value = *found;
  return absl::OkStatus();
}

absl::Status JsonNode::Get(std::string& value) const {
  const std::string* found = std::get_if<std::string>(&value_->data);
  if (found == nullptr) return WrongType("a string");
  value = *found;
  return absl::OkStatus();
}

const JsonNode::Value* JsonNode::Find(absl::string_view field) const {
  const auto* members = std::get_if<std::vector<Member>>(&value_->data);
  if (members == nullptr) return nullptr;
  auto found = std::lower_bound(members->begin(), members->end(), field,
                                [](const Member& member, absl::string_view name) {
                                  return absl::string_view(member.name) < name;
                                });
  return found != members->end() && found->name == field ? &found->value : nullptr;
}

bool JsonNode::Has(absl::string_view field) const {
  const Value* found = Find(field);
  return found != nullptr && !std::holds_alternative<std::monostate>(found->data);
}

bool JsonNode::IsNull(absl::string_view field) const {
  return Find(field) != nullptr && !Has(field);
}

absl::StatusOr<JsonNode> JsonNode::Field(absl::string_view field) const {
  ATTENDANT_RETURN_IF_ERROR(CheckObject());
  if (!Has(field)) {
    return absl::InvalidArgumentError(absl::StrCat(where(), " lacks the field ", Quoted(field)));
  }
  std::string path = absl::StrCat(path_, path_.empty() ? "" : ".", Quoted(field));
  return JsonNode(document_, Find(field), std::move(path));
}

absl::StatusOr<std::vector<std::string>> JsonNode::FieldNames() const {
  ATTENDANT_RETURN_IF_ERROR(CheckObject());
  std::vector<std::string> names;
  for (const Member& member : std::get<std::vector<Member>>(value_->data)) {
    names.push_back(member.name);
  }
  return names;
}

absl::StatusOr<std::vector<JsonNode>> JsonNode::Elements() const {
  const auto* array = std::get_if<std::vector<Value>>(&value_->data);
  if (array == nullptr) return WrongType("an array");
  std::vector<JsonNode> elements;
  for (size_t i = 0; i < array->size(); ++i) {
    elements.push_back(JsonNode(document_, &(*array)[i], absl::StrCat(path_, "[", i, "]")));
  }
  return elements;
}

absl::StatusOr<JsonNode> ParseJson(absl::string_view text, const std::string& name,
                                   const JsonLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " has ", text.size(), " bytes of JSON, the limit is ", limits.max_bytes));
  }
  // The parser takes a zero byte for the end and would not look at what follows.
  if (const size_t zero = text.find('\0'); zero != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": not valid JSON at byte ", zero + 1, ": a zero byte"));
  }
  JsonNode::Builder builder(limits);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", builder.error()));
  }
  auto document = std::make_shared<JsonNode::Document>();
  document->name = name;
  document->root = builder.TakeRoot();
  const JsonNode::Value* root = &document->root;
  return JsonNode(std::move(document), root, "");
}

absl::StatusOr<JsonNode> ReadJsonFile(const std::string& path, const JsonLimits& limits) {
  ATTENDANT_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path, limits.max_bytes));
  return ParseJson(text, path, limits);
}

}  // namespace attendant
