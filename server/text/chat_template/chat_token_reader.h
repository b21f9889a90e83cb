// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/core/base/quote.h"
#include "server/text/chat_template/chat_tokens.h"

namespace attendant::chat {

// A reader of tokens, one after the other. At the end it stays at kEnd.
class TokenReader {
 public:
  // REQUIRES: kEnd is the last one.
  explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& Now() const { return tokens_[at_]; }
  const Token& Ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& Take() {
    const Token& token = Now();
    if (token.kind != TokenKind::kEnd) ++at_;
    return token;
  }
  bool Is(TokenKind kind, absl::string_view text) const {
    return Now().kind == kind && Now().text == text;
  }
  bool TakeIf(TokenKind kind, absl::string_view text) {
    if (!Is(kind, text)) return false;
    Take();
    return true;
  }
  bool TakeOperator(absl::string_view text) { return TakeIf(TokenKind::kOperator, text); }
  bool TakeWord(absl::string_view text) { return TakeIf(TokenKind::kName, text); }

  // Errors at this token. One that goes on in Jinja, beyond the subset, is UNIMPLEMENTED for both.
  absl::Status NotHere() const {
    return Unknown(Now().line, absl::StrCat(Quoted(Now().text), " is not supported here"));
  }
  absl::Status Expected(absl::string_view what) const {
    static constexpr absl::string_view kOther[] = {"-", "==", "!=", "<=", ">=", "<",
                                                   ">", "(",  ",",  "in", "not"};
    for (const absl::string_view more : kOther) {
      const bool word = Now().kind == TokenKind::kOperator || Now().kind == TokenKind::kName;
      if (word && Now().text == more) return NotHere();
    }
    const bool end = Now().kind == TokenKind::kEnd;
    return Invalid(Now().line,
                   absl::StrCat(what, " is expected, not ", end ? "the end" : Quoted(Now().text)));
  }
  absl::Status Expect(TokenKind kind, absl::string_view text) {
    return TakeIf(kind, text) ? absl::OkStatus() : Expected(Quoted(text));
  }
  absl::Status ExpectTagEnd() { return Expect(TokenKind::kTagEnd, "%}"); }
  absl::StatusOr<std::string> TakeName() {
    if (Now().kind != TokenKind::kName) return Expected("a name");
    return Take().text;
  }

 private:
  const std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace attendant::chat
