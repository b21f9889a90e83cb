// SPDX-License-Identifier: Apache-2.0
// The normalizers of a few lines: Lowercase, Prepend, Replace, Strip.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text/base/pattern_field.h"
#include "server/text/normalizers/normalizer_kinds.h"
#include "server/text/unicode/characters.h"
#include "server/text/unicode/pattern.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

constexpr size_t kMaxContentBytes = 16;  // of Replace and Prepend: bounds how a text grows

class Lowercaser final : public Normalizer {
 public:
  void Append(absl::string_view text, std::string& out) const override {
    for (const char* position = text.data(); position < text.data() + text.size();) {
      const char32_t character = NextCharacter(position);
      if (character == kCapitalIWithDot) {
        out += "i\xCC\x87";
      } else {
        AppendUtf8(Lowercase(character), out);
      }
    }
  }
  bool cuts_at_spaces() const override { return true; }
  bool keeps_start() const override { return true; }

 private:
  static constexpr char32_t kCapitalIWithDot = 0x130;
};

class Prepender final : public Normalizer {
 public:
  explicit Prepender(std::string content) : content_(std::move(content)) {}

  void Append(absl::string_view text, std::string& out) const override {
    if (text.empty()) return;
    out += content_;
    absl::StrAppend(&out, text);
  }

 private:
  std::string content_;
};

class Replacer final : public Normalizer {
 public:
  Replacer(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void Append(absl::string_view text, std::string& out) const override {
    for (size_t done = 0; done < text.size();) {
      const Pattern::Match match = pattern_.Find(text, done);
      absl::StrAppend(&out, text.substr(done, match.begin - done));
      if (match.begin < match.end) out += content_;
      done = match.end;
    }
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Stripper final : public Normalizer {
 public:
  Stripper(bool left, bool right) : left_(left), right_(right) {}

  void Append(absl::string_view text, std::string& out) const override {
    const char* begin = text.data();
    const char* end = begin + text.size();
    while (left_ && begin < end) {
      const char* next = begin;
      if (!IsWhitespace(NextCharacter(next))) break;
      begin = next;
    }
    while (right_ && begin < end && IsWhitespace(PreviousCharacter(end))) {
      do --end;
      while ((static_cast<unsigned char>(*end) & 0xC0) == 0x80);
    }
    out.append(begin, static_cast<size_t>(end - begin));
  }

 private:
  bool left_;
  bool right_;
};

std::string ReadContent(const JsonFields& fields, absl::string_view key) {
  std::string content = fields.String(key);
  if (content.size() > kMaxContentBytes) {
    fields.Fail(key,
                absl::StrCat("has ", content.size(), " bytes, the limit is ", kMaxContentBytes));
  }
  return content;
}

}  // namespace

std::unique_ptr<Normalizer> ReadLowercase(const JsonFields&) {
  return std::make_unique<Lowercaser>();
}

std::unique_ptr<Normalizer> ReadPrepend(const JsonFields& fields) {
  return std::make_unique<Prepender>(ReadContent(fields, "prepend"));
}

std::unique_ptr<Normalizer> ReadReplace(const JsonFields& fields) {
  std::optional<Pattern> pattern = ReadPattern(fields);
  std::string content = ReadContent(fields, "content");
  if (!fields.ok()) return nullptr;
  return std::make_unique<Replacer>(*std::move(pattern), std::move(content));
}

std::unique_ptr<Normalizer> ReadStrip(const JsonFields& fields) {
  const bool left = fields.Bool("strip_left");
  return std::make_unique<Stripper>(left, fields.Bool("strip_right"));
}

}  // namespace attendant
