// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/unicode/characters.h"

namespace attendant {

// A set of characters, as [\s\p{L}a-z] says.
class CharacterSet {
 public:
  void AddRange(char32_t first, char32_t last);
  void AddCategories(uint32_t major_categories) { categories_ |= major_categories; }
  void AddOutside(uint32_t major_categories) { outside_.push_back(major_categories); }
  void AddWhitespace() { whitespace_ = true; }
  void AddNonWhitespace() { non_whitespace_ = true; }
  void Invert() { inverted_ = !inverted_; }
  // After the last change, before the first Contains.
  void Seal();

  bool Contains(char32_t character) const {
    return character < 0x80 ? ascii_[character] : Find(character);
  }
  bool MayContainAscii() const { return ascii_.any(); }
  // False: it contains no character beyond ASCII.
  bool MayContainOthers() const;

 private:
  bool Find(char32_t character) const;
  bool HasClass(uint32_t character_class) const;

  std::vector<std::pair<char32_t, char32_t>> ranges_;
  uint32_t categories_ = 0;
  std::vector<uint32_t> outside_;  // characters that have none of these
  bool whitespace_ = false;
  bool non_whitespace_ = false;
  bool inverted_ = false;
  std::bitset<128> ascii_;
  std::bitset<kCharacterClasses> classes_;  // of all characters that are in it, ranges apart
};

// A regular expression that a tokenizer cuts text with. Alternatives of sequences of characters
// and sets ([...], \s, \S, \p{L}, \P{N}) with greedy ?, *, +, {m,n}; (?i:...) and (?:...) after
// fixed characters only; (?!...) of one set at the end. The first alternative that matches counts,
// as in Oniguruma. Immutable, thread-safe.
class Pattern {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
  };

  // UNIMPLEMENTED, naming the place, for anything else and for what matches no characters.
  static absl::StatusOr<Pattern> Parse(absl::string_view regex);
  // Of this text. REQUIRES: not empty.
  static Pattern Literal(absl::string_view text);

  // The leftmost match at or after `from`; an empty one at the end when there is none. Backtracks:
  // time is linear where no two neighbours of a sequence repeat the same characters. REQUIRES:
  // valid UTF-8.
  Match Find(absl::string_view text, size_t from) const;

  // Appends `text` to `out`, with `content` in place of each match. Stops when `out` has more than
  // `max_bytes`. REQUIRES: as Find.
  void AppendReplaced(absl::string_view text, absl::string_view content, size_t max_bytes,
                      std::string& out) const;
  // A text becomes at most so many times as long by that, at least 1.
  double ReplacedTimes(absl::string_view content) const;

 private:
  friend class PatternParser;

  struct Item {
    CharacterSet set;
    uint32_t min = 1;
    uint32_t max = 1;
  };
  struct Sequence {
    std::vector<Item> items;
    bool has_ahead = false;  // what follows is not in `ahead`
    CharacterSet ahead;
  };
  static constexpr size_t kMaxSequences = 64;

  Pattern() = default;
  void IndexFirstCharacters();
  static const char* MatchFrom(const Sequence& sequence, size_t item, const char* position,
                               const char* end);
  static bool IsAhead(const Sequence& sequence, const char* position, const char* end);

  std::vector<Sequence> sequences_;
  std::array<uint64_t, 129> may_start_{};  // by ASCII character, and any other: sequences, as bits
};

}  // namespace attendant
