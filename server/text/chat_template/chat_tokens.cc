// SPDX-License-Identifier: Apache-2.0
#include "server/text/chat_template/chat_tokens.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/text/unicode/characters.h"
#include "server/text/unicode/utf8.h"

namespace attendant::chat {
namespace {

// In the order in which they are tried.
constexpr absl::string_view kOperators[] = {"==", "!=", "<=", ">=", "<", ">", "|", "(", ")",
                                            "[",  "]",  ".",  ",",  "=", "~", "+", "-", ":"};

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool BeginsName(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }

// `text` without the whitespace at its end.
absl::string_view StripEnd(absl::string_view text) {
  const char* end = text.data() + text.size();
  while (end > text.data() && IsPythonSpace(PreviousCharacter(end))) end = CharacterBefore(end);
  return {text.data(), static_cast<size_t>(end - text.data())};
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (at_ < source_.size()) {
      const size_t tag = FindTag();
      AddText(source_.substr(at_, tag - at_), tag);
      if (tag == source_.size()) break;
      at_ = tag + 2;
      if (Peek() == '-' || Peek() == '+') ++at_;
      ATTENDANT_RETURN_IF_ERROR(source_[tag + 1] == '#' ? SkipComment()
                                                        : ReadTag(source_[tag + 1] == '{'));
    }
    Add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  absl::string_view Rest() const { return absl::string_view(source_).substr(at_); }

  void Add(TokenKind kind, std::string text) {
    tokens_.push_back({.kind = kind, .text = std::move(text), .line = line_});
  }

  // Goes past `size` bytes.
  void Skip(size_t size) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(at_ + size),
                                         '\n'));
    at_ += size;
  }

  void SkipSpaces() {
    while (at_ < source_.size()) {
      const char* next = &source_[at_];
      if (!IsPythonSpace(NextCharacter(next))) return;
      Skip(static_cast<size_t>(next - &source_[at_]));
    }
  }

  size_t FindTag() const {
    for (size_t i = at_; i + 1 < source_.size(); ++i) {
      const char next = source_[i + 1];
      if (source_[i] == '{' && (next == '{' || next == '%' || next == '#')) return i;
    }
    return source_.size();
  }

  // `text` stands before the tag, whose sign and kind say which of its whitespace counts.
  void AddText(absl::string_view text, size_t tag) {
    const size_t size = text.size();
    const char kind = tag < source_.size() ? source_[tag + 1] : '\0';
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    if (kind != '\0' && sign == '-') {
      text = StripEnd(text);
    } else if ((kind == '%' || kind == '#') && sign != '+') {
      const size_t newline = text.rfind('\n');
      const size_t begin = newline == absl::string_view::npos ? 0 : newline + 1;
      const bool whole_line = begin > 0 || starts_line_;
      if (whole_line && StripEnd(text.substr(begin)).empty()) {
        text = text.substr(0, begin);
      }
    }
    if (!text.empty()) Add(TokenKind::kText, std::string(text));
    Skip(size);
  }

  // Whether an end of a tag is here: "%}", "-%}" or "+%}". Goes past it and the whitespace that it
  // takes along.
  bool TakeEnd(absl::string_view end, bool takes_newline) {
    const bool signed_end = Peek() == '-' || (Peek() == '+' && takes_newline);
    const char sign = signed_end ? Peek() : '\0';
    if (Rest().substr(signed_end ? 1 : 0, 2) != end) return false;
    const size_t from = at_;
    Skip(signed_end ? 3 : 2);
    if (sign == '-') {
      SkipSpaces();
    } else if (sign == '\0' && takes_newline && Peek() == '\n') {
      Skip(1);
    }
    starts_line_ = at_ > from && source_[at_ - 1] == '\n';
    return true;
  }

  absl::Status SkipComment() {
    const int line = line_;
    while (at_ < source_.size()) {
      if (TakeEnd("#}", true)) return absl::OkStatus();
      Skip(1);
    }
    return Invalid(line, "a comment has no end");
  }

  absl::Status ReadTag(bool prints) {
    const int line = line_;
    const absl::string_view end = prints ? "}}" : "%}";
    Add(prints ? TokenKind::kPrintBegin : TokenKind::kTagBegin, "");
    while (true) {
      SkipSpaces();
      if (at_ >= source_.size()) return Invalid(line, "a tag has no end");
      const int at_line = line_;
      if (TakeEnd(end, !prints)) {
        tokens_.push_back({.kind = prints ? TokenKind::kPrintEnd : TokenKind::kTagEnd,
                           .text = std::string(end),
                           .line = at_line});
        return absl::OkStatus();
      }
      ATTENDANT_RETURN_IF_ERROR(ReadToken());
    }
  }

  absl::Status ReadToken() {
    const char first = Peek();
    if (first == '\'' || first == '"') return ReadString(first);
    if (BeginsName(first) || IsDigit(first)) {
      const bool name = BeginsName(first);
      size_t size = 1;
      while (IsDigit(Peek(size)) || BeginsName(Peek(size))) {
        ++size;
      }
      Add(name ? TokenKind::kName : TokenKind::kInteger, std::string(Rest().substr(0, size)));
      Skip(size);
      return absl::OkStatus();
    }
    for (const absl::string_view known : kOperators) {
      if (!absl::StartsWith(Rest(), known)) continue;
      Add(TokenKind::kOperator, std::string(known));
      Skip(known.size());
      return absl::OkStatus();
    }
    return Unknown(line_, absl::StrCat(Quoted(Rest().substr(0, 1)), " is not supported"));
  }

  absl::Status ReadString(char quote) {
    const int line = line_;
    std::string text;
    Skip(1);
    while (at_ < source_.size() && Peek() != quote) {
      if (Peek() == '\\') {
        constexpr absl::string_view kEscapes = "nrt\\'\"", kMeant = "\n\r\t\\'\"";
        const size_t found = kEscapes.find(Peek(1));
        if (found == absl::string_view::npos) {
          return Unknown(line_,
                         absl::StrCat("escape ", Quoted(Rest().substr(0, 2)), " is not supported"));
        }
        text.push_back(kMeant[found]);
        Skip(2);
      } else {
        text.push_back(Peek());
        Skip(1);
      }
    }
    if (at_ >= source_.size()) return Invalid(line, "a text between quotes has no end");
    Skip(1);
    tokens_.push_back({.kind = TokenKind::kString, .text = std::move(text), .line = line});
    return absl::OkStatus();
  }

  const std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;  // the text at `at_` does
  std::vector<Token> tokens_;
};

}  // namespace

bool IsPythonSpace(char32_t character) {
  return IsWhitespace(character) || (character >= 0x1C && character <= 0x1F);
}

absl::Status Invalid(int line, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", message));
}

absl::Status Unknown(int line, absl::string_view message) {
  return absl::UnimplementedError(absl::StrCat("line ", line, ": ", message));
}

// Jinja makes one kind of line end of all, and leaves out the last one of a template.
absl::StatusOr<std::vector<Token>> FindTokens(absl::string_view source) {
  std::string text = absl::StrReplaceAll(source, {{"\r\n", "\n"}, {"\r", "\n"}});
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return Lexer(std::move(text)).Run();
}

}  // namespace attendant::chat
