// SPDX-License-Identifier: Apache-2.0
#include "server/text/chat_template/chat_filters.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/text/chat_template/chat_tokens.h"
#include "server/text/unicode/utf8.h"

namespace attendant::chat {
namespace {

using Filtered = absl::StatusOr<Value>;

absl::Status WrongArguments(absl::string_view filter) {
  return absl::UnimplementedError(
      absl::StrCat("filter ", Quoted(filter), " with these arguments is not supported"));
}

// The items of a list; none of an undefined value, which Jinja takes for an empty list.
absl::StatusOr<std::vector<Value>> Items(absl::string_view filter, Value value) {
  if (value.kind == ValueKind::kUndefined) return std::vector<Value>();
  if (value.kind == ValueKind::kList || value.kind == ValueKind::kLazyList) {
    return std::move(value.list);
  }
  return absl::UnimplementedError(
      absl::StrCat("filter ", Quoted(filter), " of a value that is no list is not supported"));
}

Filtered Default(Value value, const Arguments& arguments) {
  constexpr absl::string_view kNames[] = {"default_value", "boolean"};
  Value given[] = {Value::Text(std::string()), Value::Bool(false)};
  for (size_t i = 0; i < arguments.values.size(); ++i) {
    const std::string& name = arguments.names[i];
    const size_t at = name.empty() ? i : name == kNames[0] ? 0 : name == kNames[1] ? 1 : 2;
    if (at >= std::size(given)) return WrongArguments("default");
    given[at] = arguments.values[i];
  }
  if (value.kind == ValueKind::kUndefined) return given[0];
  ATTENDANT_ASSIGN_OR_RETURN(const bool replaces_false, IsTrue(given[1]));
  if (!replaces_false) return value;
  ATTENDANT_ASSIGN_OR_RETURN(const bool keeps, IsTrue(value));
  return keeps ? std::move(value) : given[0];
}

Filtered End(bool last, Value value, const Arguments& arguments) {
  const absl::string_view name = last ? "last" : "first";
  if (!arguments.values.empty()) return WrongArguments(name);
  if (last) ATTENDANT_RETURN_IF_ERROR(CheckNotLazy(value, "the last of"));
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<Value> items, Items(name, std::move(value)));
  if (items.empty()) return Value();
  return std::move(last ? items.back() : items.front());
}

Filtered Length(Value value, const Arguments& arguments) {
  if (!arguments.values.empty()) return WrongArguments("length");
  ATTENDANT_RETURN_IF_ERROR(CheckNotLazy(value, "the length of"));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<Value> items, Items("length", std::move(value)));
  return Value::Integer(static_cast<int64_t>(items.size()));
}

Filtered List(Value value, const Arguments& arguments) {
  if (!arguments.values.empty()) return WrongArguments("list");
  Value list{.kind = ValueKind::kList};
  ATTENDANT_ASSIGN_OR_RETURN(list.list, Items("list", std::move(value)));
  return list;
}

Filtered Map(Value value, const Arguments& arguments) {
  if (arguments.values.size() != 1 || arguments.names[0] != "attribute") {
    return WrongArguments("map");
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::string attribute, FixedText(arguments.values[0]));
  Value list{.kind = ValueKind::kLazyList};
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<Value> items, Items("map", std::move(value)));
  for (const Value& item : items) {
    ATTENDANT_ASSIGN_OR_RETURN(list.list.emplace_back(), GetAttribute(item, attribute));
  }
  return list;
}

// Whether an attribute passes the test of selectattr, whose arguments come behind the attribute's
// name.
absl::StatusOr<bool> Passes(absl::string_view filter, const Value& value,
                            const Arguments& arguments) {
  const std::vector<Value>& values = arguments.values;
  if (values.size() == 1) return IsTrue(value);
  ATTENDANT_ASSIGN_OR_RETURN(const std::string name, FixedText(values[1]));
  const absl::string_view test = name;
  const bool equal = test == "eq" || test == "==" || test == "equalto";
  if (values.size() == 3 && (equal || test == "ne" || test == "!=")) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool same, IsEqual(value, values[2]));
    return same == equal;
  }
  if (values.size() == 2 && test == "defined") return value.kind != ValueKind::kUndefined;
  return WrongArguments(filter);
}

Filtered Select(bool keeps, Value value, const Arguments& arguments) {
  const absl::string_view name = keeps ? "selectattr" : "rejectattr";
  if (arguments.values.empty()) return WrongArguments(name);
  for (const std::string& argument : arguments.names) {
    if (!argument.empty()) return WrongArguments(name);
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::string attribute, FixedText(arguments.values[0]));
  Value list{.kind = ValueKind::kLazyList};
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<Value> items, Items(name, std::move(value)));
  for (Value& item : items) {
    ATTENDANT_ASSIGN_OR_RETURN(const Value found, GetAttribute(item, attribute));
    ATTENDANT_ASSIGN_OR_RETURN(const bool passes, Passes(name, found, arguments));
    if (passes == keeps) list.list.push_back(std::move(item));
  }
  return list;
}

Filtered Trim(const Value& value, const Arguments& arguments) {
  if (!arguments.values.empty()) return WrongArguments("trim");
  if (value.kind == ValueKind::kUndefined) return Value::Text(std::string());
  ATTENDANT_ASSIGN_OR_RETURN(const std::string text, FixedText(value));
  const char* begin = text.data() + text.size();
  const char* end = text.data();
  for (const char* at = text.data(); at < text.data() + text.size();) {
    const char* const from = at;
    if (IsPythonSpace(NextCharacter(at))) continue;
    begin = std::min(begin, from);
    end = at;
  }
  return Value::Text(begin < end ? std::string(begin, end) : std::string());
}

Filtered String(const Value& value, const Arguments& arguments) {
  if (!arguments.values.empty()) return WrongArguments("string");
  ATTENDANT_ASSIGN_OR_RETURN(ChatText text, ToText(value));
  return Value::Text(std::move(text));
}

}  // namespace

absl::StatusOr<Value> ApplyFilter(absl::string_view name, Value value, const Arguments& arguments) {
  if (name == "default" || name == "d") return Default(std::move(value), arguments);
  if (name == "first" || name == "last") return End(name == "last", std::move(value), arguments);
  if (name == "length" || name == "count") return Length(std::move(value), arguments);
  if (name == "list") return List(std::move(value), arguments);
  if (name == "map") return Map(std::move(value), arguments);
  if (name == "selectattr" || name == "rejectattr") {
    return Select(name == "selectattr", std::move(value), arguments);
  }
  if (name == "string") return String(value, arguments);
  if (name == "trim") return Trim(value, arguments);
  return absl::UnimplementedError(
      absl::StrCat("filter ", Quoted(name),
                   " is not supported; supported: default, first, last, length, list, map, "
                   "rejectattr, selectattr, string, trim"));
}

}  // namespace attendant::chat
