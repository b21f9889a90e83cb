// SPDX-License-Identifier: Apache-2.0
// The normalizers of a few lines: Lowercase, Prepend, Replace, Strip, StripAccents.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text/base/aligned_text.h"
#include "server/text/base/pattern_field.h"
#include "server/text/normalizers/normalizer_kinds.h"
#include "server/text/unicode/characters.h"
#include "server/text/unicode/pattern.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

class Lowercaser final : public Normalizer {
 public:
  void Append(absl::string_view text, size_t max_bytes, std::string& out) const override {
    const char* const end = text.data() + text.size();
    for (const char* position = text.data(); position < end && out.size() <= max_bytes;) {
      AppendLower(NextCharacter(position), out);
    }
  }
  void Align(AlignedText& text) const override { text.Map(AppendLower); }
  Growth growth() const override { return {.times = 1.5}; }
  bool cuts_at_spaces() const override { return true; }
  bool keeps_start() const override { return true; }

 private:
  static void AppendLower(char32_t character, std::string& out) {
    if (character == kCapitalIWithDot) {
      out += "i\xCC\x87";
    } else {
      AppendUtf8(Lowercase(character), out);
    }
  }

  static constexpr char32_t kCapitalIWithDot = 0x130;
};

class Prepender final : public Normalizer {
 public:
  explicit Prepender(std::string content) : content_(std::move(content)) {}

  void Append(absl::string_view text, size_t /*max_bytes*/, std::string& out) const override {
    if (text.empty()) return;
    out += content_;
    absl::StrAppend(&out, text);
  }
  void Align(AlignedText& text) const override {
    if (text.text().empty()) return;
    AlignedText prepended = text.Empty();
    prepended.Append(content_, text.sources()[0]);
    prepended.AppendPart(text, 0, text.text().size());
    text = std::move(prepended);
  }
  Growth growth() const override { return {.times = 1.0 + static_cast<double>(content_.size())}; }

 private:
  std::string content_;
};

class Replacer final : public Normalizer {
 public:
  Replacer(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void Append(absl::string_view text, size_t max_bytes, std::string& out) const override {
    pattern_.AppendReplaced(text, content_, max_bytes, out);
  }
  // The content comes from the last character that it replaces.
  void Align(AlignedText& text) const override {
    AlignedText replaced = text.Empty();
    Pattern::Matcher matcher(pattern_, text.text());
    for (size_t done = 0; done < text.text().size() && !replaced.is_full();) {
      const Pattern::Match match = matcher.Find(done);
      replaced.AppendPart(text, done, match.begin);
      if (match.begin < match.end) replaced.Append(content_, text.sources()[match.end - 1]);
      done = match.end;
    }
    text = std::move(replaced);
  }
  Growth growth() const override { return {.times = pattern_.ReplacedTimes(content_)}; }

 private:
  Pattern pattern_;
  std::string content_;
};

class Stripper final : public Normalizer {
 public:
  Stripper(bool left, bool right) : left_(left), right_(right) {}

  void Append(absl::string_view text, size_t /*max_bytes*/, std::string& out) const override {
    absl::StrAppend(&out, Strip(text));
  }
  void Align(AlignedText& text) const override {
    const absl::string_view kept = Strip(text.text());
    const auto begin = static_cast<size_t>(kept.data() - text.text().data());
    AlignedText stripped = text.Empty();
    stripped.AppendPart(text, begin, begin + kept.size());
    text = std::move(stripped);
  }
  Growth growth() const override { return {}; }

 private:
  absl::string_view Strip(absl::string_view text) const {
    const char* begin = text.data();
    const char* end = begin + text.size();
    while (left_ && begin < end) {
      const char* next = begin;
      if (!IsWhitespace(NextCharacter(next))) break;
      begin = next;
    }
    while (right_ && begin < end && IsWhitespace(PreviousCharacter(end))) {
      end = CharacterBefore(end);
    }
    return absl::string_view(begin, static_cast<size_t>(end - begin));
  }

  bool left_;
  bool right_;
};

class AccentStripper final : public Normalizer {
 public:
  void Append(absl::string_view text, size_t max_bytes, std::string& out) const override {
    const char* const end = text.data() + text.size();
    for (const char* position = text.data(); position < end && out.size() <= max_bytes;) {
      AppendOther(NextCharacter(position), out);
    }
  }
  void Align(AlignedText& text) const override { text.Map(AppendOther); }
  Growth growth() const override { return {}; }
  bool cuts_at_spaces() const override { return true; }

 private:
  static void AppendOther(char32_t character, std::string& out) {
    if (!IsMark(character)) AppendUtf8(character, out);
  }
};

}  // namespace

std::unique_ptr<Normalizer> ReadLowercase(const JsonFields&) {
  return std::make_unique<Lowercaser>();
}

// In the library, an empty one makes the first character count as put in: it gets no offset, and
// ByteLevel writes it twice.
std::unique_ptr<Normalizer> ReadPrepend(const JsonFields& fields) {
  std::string content = ReadContent(fields, "prepend");
  if (content.empty()) fields.Fail("prepend", "is empty");
  return std::make_unique<Prepender>(std::move(content));
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

std::unique_ptr<Normalizer> ReadStripAccents(const JsonFields&) {
  return std::make_unique<AccentStripper>();
}

}  // namespace attendant
