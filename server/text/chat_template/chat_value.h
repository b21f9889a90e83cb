// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/chat_template/chat_template.h"

namespace attendant::chat {

enum class ValueKind : uint8_t {
  kUndefined,
  kNone,
  kBool,      // `number` is 0 or 1
  kInteger,   // `number`
  kText,      // `text`
  kMessage,   // `message`
  kList,      // `list`
  kLazyList,  // `list`, which Jinja finds as it is read, once: no length, no truth, no items
  kLoop,      // of a `for`: it is in turn `number` of `count`
};

// A value of a template.
struct Value {
  ValueKind kind = ValueKind::kUndefined;
  int64_t number = 0;
  int64_t count = 0;
  ChatText text{};
  const ChatMessage* message = nullptr;
  std::vector<Value> list{};

  static Value Bool(bool value) { return {.kind = ValueKind::kBool, .number = value ? 1 : 0}; }
  static Value Integer(int64_t value) { return {.kind = ValueKind::kInteger, .number = value}; }
  static Value Text(ChatText text) { return {.kind = ValueKind::kText, .text = std::move(text)}; }
  static Value Text(std::string fixed);

  bool is_number() const { return kind == ValueKind::kBool || kind == ValueKind::kInteger; }
};

// The memory that a value takes, and so a copy.
size_t SizeOf(const Value& value);

// The texts of an expression's values. Errors are UNIMPLEMENTED for what depends on an unknown text
// and for kinds of values that Jinja takes and this subset does not, INVALID_ARGUMENT for a text
// beyond kMaxRenderedBytes; they do not name a line.
absl::Status Append(const ChatText& more, ChatText& text);
absl::StatusOr<ChatText> ToText(const Value& value);  // as it is printed
absl::StatusOr<bool> IsTrue(const Value& value);
absl::StatusOr<bool> IsEqual(const Value& a, const Value& b);
absl::StatusOr<bool> IsLess(const Value& a, const Value& b);
absl::StatusOr<std::string> FixedText(const Value& value);

// UNIMPLEMENTED for a lazy list; `use`: "the truth of".
absl::Status CheckNotLazy(const Value& value, absl::string_view use);

// An attribute or item of that name.
absl::StatusOr<Value> GetAttribute(const Value& value, absl::string_view name);
// An item of a list, from its end for a negative number.
absl::StatusOr<Value> GetItem(const Value& value, int64_t index);

}  // namespace attendant::chat
