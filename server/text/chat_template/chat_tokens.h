// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::chat {

enum class TokenKind : uint8_t {
  kText,  // outside of tags, with the whitespace that Jinja leaves
  kPrintBegin,
  kPrintEnd,
  kTagBegin,
  kTagEnd,
  kName,
  kInteger,
  kString,  // without quotes and escapes
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
};

// "line 3: " before the message.
absl::Status Invalid(int line, absl::string_view message);  // INVALID_ARGUMENT
absl::Status Unknown(int line, absl::string_view message);  // UNIMPLEMENTED

// Python's str.isspace(), which is also its \s.
bool IsPythonSpace(char32_t character);

// The tokens of a template, kEnd last; as transformers' Jinja has them, with trim_blocks and
// lstrip_blocks. Errors are those of ChatTemplate::Parse. REQUIRES: valid UTF-8.
absl::StatusOr<std::vector<Token>> FindTokens(absl::string_view source);

}  // namespace attendant::chat
