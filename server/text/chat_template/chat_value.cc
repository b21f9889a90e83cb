// SPDX-License-Identifier: Apache-2.0
#include "server/text/chat_template/chat_value.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"

namespace attendant::chat {
namespace {

// That an unknown text counts for: much, as a template gives out each of the two once.
constexpr size_t kUnknownBytes = 1 << 10;

size_t CountBytes(const ChatText& text) {
  size_t bytes = 0;
  for (const ChatPart& part : text) {
    bytes += part.unknown == ChatPart::kFixed ? part.fixed.size() : kUnknownBytes;
  }
  return bytes;
}

bool IsFixed(const ChatText& text) {
  return std::all_of(text.begin(), text.end(),
                     [](const ChatPart& part) { return part.unknown == ChatPart::kFixed; });
}

absl::Status DependsOnText() {
  return absl::UnimplementedError(
      "the template depends on what the query or document holds, which is not supported");
}

absl::Status NoKind(absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat(what, " is not supported here"));
}

absl::string_view KindName(ValueKind kind) {
  switch (kind) {
    case ValueKind::kMessage:
      return "a message";
    case ValueKind::kList:
      return "a list";
    case ValueKind::kLazyList:
      return "a filtered list without `| list`";
    case ValueKind::kLoop:
      return "`loop`";
    default:
      return "this value";
  }
}

}  // namespace

Value Value::Text(std::string fixed) {
  if (fixed.empty()) return Text(ChatText());
  return Text(ChatText{{.fixed = std::move(fixed)}});
}

size_t SizeOf(const Value& value) {
  size_t bytes = sizeof(Value);
  for (const ChatPart& part : value.text) bytes += sizeof(ChatPart) + part.fixed.size();
  for (const Value& item : value.list) bytes += SizeOf(item);
  return bytes;
}

absl::Status Append(const ChatText& more, ChatText& text) {
  if (CountBytes(text) + CountBytes(more) > kMaxRenderedBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a text becomes longer than ", kMaxRenderedBytes, " bytes, the limit"));
  }
  for (const ChatPart& part : more) {
    const bool joins = !text.empty() && part.unknown == ChatPart::kFixed &&
                       text.back().unknown == ChatPart::kFixed;
    if (joins) {
      text.back().fixed += part.fixed;
    } else {
      text.push_back(part);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ChatText> ToText(const Value& value) {
  switch (value.kind) {
    case ValueKind::kUndefined:
      return ChatText();
    case ValueKind::kNone:
      return Value::Text("None").text;
    case ValueKind::kBool:
      return Value::Text(value.number != 0 ? "True" : "False").text;
    case ValueKind::kInteger:
      return Value::Text(absl::StrCat(value.number)).text;
    case ValueKind::kText:
      return value.text;
    default:
      return NoKind(absl::StrCat(KindName(value.kind), " as a text"));
  }
}

absl::StatusOr<bool> IsTrue(const Value& value) {
  ATTENDANT_RETURN_IF_ERROR(CheckNotLazy(value, "the truth of"));
  switch (value.kind) {
    case ValueKind::kBool:
    case ValueKind::kInteger:
      return value.number != 0;
    case ValueKind::kText:
      if (value.text.empty()) return false;
      for (const ChatPart& part : value.text) {
        if (part.unknown == ChatPart::kFixed) return true;
      }
      return DependsOnText();
    case ValueKind::kList:
      return !value.list.empty();
    default:
      return value.kind == ValueKind::kMessage || value.kind == ValueKind::kLoop;
  }
}

absl::StatusOr<bool> IsEqual(const Value& a, const Value& b) {
  for (const Value* value : {&a, &b}) {
    if (value->kind >= ValueKind::kMessage) {
      return NoKind(absl::StrCat("comparing ", KindName(value->kind)));
    }
  }
  if (a.is_number() && b.is_number()) return a.number == b.number;
  if (a.kind != b.kind) return false;
  if (a.kind != ValueKind::kText) return true;
  if (!IsFixed(a.text) || !IsFixed(b.text)) return DependsOnText();
  return a.text == b.text;
}

absl::StatusOr<bool> IsLess(const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) return NoKind("the order of values that are no numbers");
  return a.number < b.number;
}

absl::StatusOr<std::string> FixedText(const Value& value) {
  if (value.kind != ValueKind::kText) return NoKind("a value that is no text");
  if (!IsFixed(value.text)) return DependsOnText();
  return value.text.empty() ? std::string() : value.text.front().fixed;
}

absl::StatusOr<Value> GetAttribute(const Value& value, absl::string_view name) {
  if (value.kind == ValueKind::kUndefined) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute ", Quoted(name), " of an undefined value"));
  }
  if (value.kind == ValueKind::kMessage) {
    if (name == "role") return Value::Text(value.message->role);
    return name == "content" ? Value::Text(value.message->content) : Value();
  }
  if (value.kind != ValueKind::kLoop) return Value();
  if (name == "first") return Value::Bool(value.number == 0);
  if (name == "last") return Value::Bool(value.number + 1 == value.count);
  if (name == "index") return Value::Integer(value.number + 1);
  if (name == "index0") return Value::Integer(value.number);
  if (name == "length") return Value::Integer(value.count);
  return NoKind(absl::StrCat("`loop.", name, "`"));
}

absl::Status CheckNotLazy(const Value& value, absl::string_view use) {
  if (value.kind != ValueKind::kLazyList) return absl::OkStatus();
  return NoKind(absl::StrCat(use, " ", KindName(value.kind)));
}

absl::StatusOr<Value> GetItem(const Value& value, int64_t index) {
  ATTENDANT_RETURN_IF_ERROR(CheckNotLazy(value, "an item of"));
  if (value.kind != ValueKind::kList) return NoKind("an item of a value that is no list");
  const auto size = static_cast<int64_t>(value.list.size());
  if (index < 0) index += size;
  return index < 0 || index >= size ? Value() : value.list[static_cast<size_t>(index)];
}

}  // namespace attendant::chat
