// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/text/unicode/characters.h"
#include "server/text/unicode/pattern.h"
#include "server/text/unicode/utf8.h"

namespace attendant {

//   pattern  = sequence { "|" sequence }
//   sequence = { item [ "?" | "*" | "+" | "{m,n}" ] } [ "(?!" set ")" ]
//   item     = set | "(?:" pattern ")" | "(?i:" pattern ")"
//   set      = character | escape | "[" [ "^" ] { element [ "-" element ] } "]"
class PatternParser {
 public:
  explicit PatternParser(absl::string_view regex)
      : begin_(regex.data()), position_(begin_), end_(begin_ + regex.size()) {}

  absl::StatusOr<Pattern> Parse() {
    Pattern pattern;
    pattern.sequences_ = ParseAlternatives(false);
    if (ok_ && position_ < end_) Fail();
    for (const Pattern::Sequence& sequence : pattern.sequences_) {
      bool empty = true;
      for (const Pattern::Item& item : sequence.items) empty = empty && item.min == 0;
      if (empty) Fail();
    }
    if (CountTries(pattern.sequences_) > kMaxTries) Fail();
    if (!ok_) {
      return absl::UnimplementedError(
          absl::StrCat("is not supported from byte ", failed_at_, " on"));
    }
    pattern.Finish();
    return pattern;
  }

 private:
  using Sequence = Pattern::Sequence;

  void Fail() {
    if (ok_) failed_at_ = position_ - begin_;
    ok_ = false;
  }
  bool TakeIf(absl::string_view text) {
    const bool next = absl::string_view(position_, static_cast<size_t>(end_ - position_))
                          .substr(0, text.size()) == text;
    if (next) position_ += text.size();
    return next;
  }
  bool AtEnd() const { return position_ == end_ || *position_ == '|' || *position_ == ')'; }

  std::vector<Sequence> ParseAlternatives(bool ignore_case) {
    std::vector<Sequence> all;
    do {
      for (Sequence& sequence : ParseSequence(ignore_case)) all.push_back(std::move(sequence));
      if (all.size() > Pattern::kMaxSequences) Fail();
    } while (ok_ && TakeIf("|"));
    return all;
  }

  // Several where a group has alternatives.
  std::vector<Sequence> ParseSequence(bool ignore_case) {
    std::vector<Sequence> sequences(1);
    while (ok_ && !AtEnd()) {
      if (TakeIf("(?!")) {
        sequences = AddAhead(std::move(sequences));
        if (!AtEnd()) Fail();
      } else if (!ignore_case && TakeIf("(?i:")) {
        sequences = AddGroup(std::move(sequences), true);
      } else if (TakeIf("(?:")) {
        sequences = AddGroup(std::move(sequences), ignore_case);
      } else {
        Pattern::Item item{ParseSet(ignore_case)};
        ParseQuantifier(item.min, item.max);
        for (Sequence& sequence : sequences) sequence.items.push_back(item);
      }
      if (sequences.front().items.size() > Pattern::kMaxItems) Fail();
    }
    return sequences;
  }

  std::vector<Sequence> AddAhead(std::vector<Sequence> sequences) {
    const CharacterSet ahead = ParseSet(false);
    if (!TakeIf(")")) Fail();
    for (Sequence& sequence : sequences) {
      sequence.has_ahead = true;
      sequence.ahead = ahead;
    }
    return sequences;
  }

  // Writing the alternatives out keeps the order of tries only after a fixed number of characters.
  std::vector<Sequence> AddGroup(std::vector<Sequence> heads, bool ignore_case) {
    if (++depth_ > Pattern::kMaxGroupDepth) return Fail(), heads;
    const std::vector<Sequence> tails = ParseAlternatives(ignore_case);
    --depth_;
    if (!TakeIf(")")) Fail();
    uint32_t min = 1, max = 1;
    ParseQuantifier(min, max);
    if (max != 1 || heads.size() * (tails.size() + 1) > Pattern::kMaxSequences) Fail();
    std::vector<Sequence> all;
    for (const Sequence& head : heads) {
      for (const Pattern::Item& item : head.items) {
        if (item.min != item.max) Fail();
      }
      if (!ok_) return heads;
      for (const Sequence& tail : tails) {
        if (tail.has_ahead || (ignore_case && MayFold(tail))) Fail();
        all.push_back(head);
        all.back().items.insert(all.back().items.end(), tail.items.begin(), tail.items.end());
      }
      if (min == 0) all.push_back(head);
    }
    return all;
  }

  // Characters that all sequences may look at from one place on, of an item without an end one.
  static uint64_t CountTries(const std::vector<Sequence>& sequences) {
    uint64_t tries = 0;
    for (const Sequence& sequence : sequences) {
      for (const Pattern::Item& item : sequence.items) {
        tries += item.max == Pattern::kMany ? item.min + 1 : item.max;
      }
    }
    return tries;
  }

  // Oniguruma folds these pairs of letters to one character: U+00DF, U+FB00 to U+FB06.
  static bool MayFold(const Sequence& sequence) {
    for (size_t i = 1; i < sequence.items.size(); ++i) {
      for (const absl::string_view pair : {"ss", "st", "ff", "fi", "fl"}) {
        const auto is = [&](size_t item, size_t letter) {
          return sequence.items[item].set.Contains(static_cast<unsigned char>(pair[letter]));
        };
        if (is(i - 1, 0) && is(i, 1)) return true;
      }
    }
    return false;
  }

  void ParseQuantifier(uint32_t& min, uint32_t& max) {
    constexpr uint32_t kMany = Pattern::kMany;
    if (TakeIf("?")) {
      min = 0;
    } else if (TakeIf("*")) {
      min = 0, max = kMany;
    } else if (TakeIf("+")) {
      max = kMany;
    } else if (TakeIf("{")) {
      min = max = ParseCount();
      if (TakeIf(",")) max = position_ < end_ && *position_ == '}' ? kMany : ParseCount();
      const bool too_many = min > kMaxCount || (max != kMany && max > kMaxCount);
      if (!TakeIf("}") || max < min || max == 0 || too_many) Fail();
    } else {
      return;
    }
    // Lazy, possessive and doubled quantifiers.
    if (position_ < end_ && absl::StrContains("?*+{", absl::string_view(position_, 1))) Fail();
  }

  uint32_t ParseCount() {
    const char* const first = position_;
    uint32_t count = 0;
    while (position_ < end_ && position_ < first + 4 &&
           absl::ascii_isdigit(static_cast<unsigned char>(*position_))) {
      count = 10 * count + static_cast<uint32_t>(*position_++ - '0');
    }
    if (position_ == first) Fail();
    return count;
  }

  CharacterSet ParseSet(bool ignore_case) {
    CharacterSet set;
    if (TakeIf("[")) {
      ParseBrackets(set, ignore_case);
    } else {
      ParseElement(set, "[](){}?*+^$.|", ignore_case);
    }
    set.Seal();
    if (set.num_ranges() <= Pattern::kMaxRanges) return set;
    return Fail(), CharacterSet();
  }

  // In brackets and without case, Oniguruma adds all that folds to a character of these classes:
  // "ss", which folds as U+00DF does, and marks.
  bool AtClass() const {
    return end_ - position_ >= 2 && *position_ == '\\' &&
           absl::StrContains("SpP", absl::string_view(position_ + 1, 1));
  }

  void ParseBrackets(CharacterSet& set, bool ignore_case) {
    const bool inverted = TakeIf("^");
    if (position_ < end_ && *position_ == ']') Fail();
    while (ok_ && !TakeIf("]")) {
      if (ignore_case && AtClass()) Fail();
      const char32_t first = ParseElement(set, "[&^-", ignore_case);
      if (!ok_ || !TakeIf("-")) continue;
      CharacterSet ignored;
      const char32_t last = ParseElement(ignored, "[]&^-", ignore_case);
      if (first == 0 || last < first || ignore_case) Fail();
      set.AddRange(first, last);
    }
    if (inverted) set.Invert();
  }

  // Adds one character or class; returns the character. `forbidden`: characters that mean something
  // else here.
  char32_t ParseElement(CharacterSet& set, absl::string_view forbidden, bool ignore_case) {
    if (position_ == end_) return Fail(), 0;
    if (TakeIf("\\")) return ParseEscape(set);
    if (absl::StrContains(forbidden, absl::string_view(position_, 1))) return Fail(), 0;
    const char32_t character = NextCharacter(position_);
    if (ignore_case) {
      AddCases(set, character);
    } else {
      set.AddRange(character, character);
    }
    return character;
  }

  void AddCases(CharacterSet& set, char32_t character) {
    if (character >= 0x80) return Fail();
    const auto byte = static_cast<unsigned char>(character);
    const auto add = [&](char32_t c) { set.AddRange(c, c); };
    add(static_cast<unsigned char>(absl::ascii_tolower(byte)));
    add(static_cast<unsigned char>(absl::ascii_toupper(byte)));
    if (absl::ascii_tolower(byte) == 's') add(0x17F);   // long s
    if (absl::ascii_tolower(byte) == 'k') add(0x212A);  // Kelvin
  }

  char32_t ParseEscape(CharacterSet& set) {
    if (position_ == end_) return Fail(), 0;
    const char letter = *position_++;
    const auto one = [&](char32_t c) { return set.AddRange(c, c), c; };
    switch (letter) {
      case 'r':
        return one('\r');
      case 'n':
        return one('\n');
      case 't':
        return one('\t');
      case 's':
        set.AddWhitespace();
        return 0;
      case 'S':
        set.AddNonWhitespace();
        return 0;
      case 'p':
      case 'P':
        ParseCategory(set, letter == 'P');
        return 0;
      default:
        if (!absl::ascii_ispunct(static_cast<unsigned char>(letter))) Fail();
        return one(static_cast<unsigned char>(letter));
    }
  }

  // Only the major categories.
  void ParseCategory(CharacterSet& set, bool inverted) {
    constexpr absl::string_view kLetters = "LNMPSZ";
    const absl::string_view rest(position_, static_cast<size_t>(end_ - position_));
    const size_t category = rest.size() >= 3 ? kLetters.find(rest[1]) : absl::string_view::npos;
    if (rest.substr(0, 1) != "{" || category == absl::string_view::npos || rest[2] != '}') {
      return Fail();
    }
    position_ += 3;
    const uint32_t bit = uint32_t{1} << category;
    inverted ? set.AddOutside(bit) : set.AddCategories(bit);
  }

  static constexpr uint32_t kMaxCount = 64;
  static constexpr uint64_t kMaxTries = 1024;

  const char* begin_;
  const char* position_;
  const char* end_;
  size_t depth_ = 0;  // groups that are open: the parser calls itself for each
  bool ok_ = true;
  int64_t failed_at_ = 0;
};

absl::StatusOr<Pattern> Pattern::Parse(absl::string_view regex) {
  return PatternParser(regex).Parse();
}

}  // namespace attendant
