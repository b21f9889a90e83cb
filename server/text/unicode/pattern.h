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
  void AddOutside(uint32_t major_categories);
  void AddWhitespace() { whitespace_ = true; }
  void AddNonWhitespace() { non_whitespace_ = true; }
  void Invert() { inverted_ = !inverted_; }
  // After the last change, before the first Contains.
  void Seal();

  bool Contains(char32_t character) const {
    return character < 0x80 ? ascii_[character] : Find(character);
  }
  size_t num_ranges() const { return ranges_.size(); }  // sealed: those with gaps between them
  bool MayContainAscii() const { return ascii_.any(); }
  // False: it contains no character beyond ASCII.
  bool MayContainOthers() const;

 private:
  bool Find(char32_t character) const;
  bool HasClass(uint32_t character_class) const;

  std::vector<std::pair<char32_t, char32_t>> ranges_;  // sealed: in order, with gaps between them
  uint32_t categories_ = 0;
  std::vector<uint32_t> outside_;  // characters that have none of these
  bool whitespace_ = false;
  bool non_whitespace_ = false;
  bool inverted_ = false;
  std::bitset<128> ascii_;
  std::bitset<kCharacterClasses> classes_;  // of all characters that are in it, ranges apart
};

// A regular expression that a tokenizer cuts text with. Alternatives of sequences of characters
// and sets ([...], \s, \S, \p{L}, \P{N}) with greedy ?, *, +, {m,n}, m and n up to 64; (?i:...)
// and (?:...) after fixed characters only, at most kMaxGroupDepth in each other; (?!...) of one set
// at the end. Sets have at most kMaxRanges ranges of characters. The first alternative that matches
// counts, as in Oniguruma, where "ss" in (?i:...) would match U+00DF too: such pairs are not
// supported, nor \S and \p{L} in brackets there. Immutable, thread-safe.
class Pattern {
 public:
  static constexpr size_t kMaxItems = 64;  // of a sequence; a match looks at them one in another
  static constexpr size_t kMaxGroupDepth = 32;  // a real pattern has 1
  static constexpr size_t kMaxRanges = 1024;    // of a set; sequences have copies of it

  struct Match {
    size_t begin = 0;
    size_t end = 0;
  };

  // UNIMPLEMENTED, naming the place, for anything else and for what matches no characters.
  static absl::StatusOr<Pattern> Parse(absl::string_view regex);
  // The pattern that matches this text. REQUIRES: not empty, at most kMaxItems characters.
  static Pattern Literal(absl::string_view text);

  class Matcher;

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
    // The first of Matcher's memos, one for each item and the end; none: its items never run over
    // more than a few characters in vain.
    size_t first_memo = kNoMemo;
  };
  static constexpr size_t kMaxSequences = 64;
  static constexpr uint32_t kMany = UINT32_MAX;  // no upper bound of an item
  static constexpr size_t kNoMemo = SIZE_MAX;

  Pattern() = default;
  void Finish();
  static bool MayRunInVain(const Sequence& sequence);

  std::vector<Sequence> sequences_;
  size_t num_memos_ = 0;
  std::array<uint64_t, 129> may_start_{};  // by ASCII character, and any other: sequences, as bits
};

// Finds the matches of a pattern in one text, in the order of the text: linear time in all, times
// the items of the pattern. Views both; the text is valid UTF-8.
class Pattern::Matcher {
 public:
  Matcher(const Pattern& pattern, absl::string_view text) : pattern_(pattern), text_(text) {}

  // The leftmost match at or after `from`; an empty one at the end when there is none.
  Match Find(size_t from);

 private:
  // The results for one item of a sequence so far, so that no character is read again and again.
  // Covers one stretch of the text; a stretch elsewhere replaces it.
  struct Memo {
    // A run of characters of the item's set, up to the first character outside the set.
    const char* run_begin = nullptr;
    const char* run_end = nullptr;
    // The places where this item and the items after it do not match: every character from the
    // first to the last.
    const char* first_failure = nullptr;
    const char* last_failure = nullptr;

    bool Fails(const char* position) const {
      return first_failure != nullptr && position >= first_failure && position <= last_failure;
    }
    void AddFailure(const char* position);
  };

  static const char* MatchPlainly(const Sequence& sequence, size_t item, const char* position,
                                  const char* end);
  const char* MatchWithMemos(const Sequence& sequence, size_t item, const char* position);
  const char* TryAll(const Sequence& sequence, size_t item, const char* position);
  static bool IsAhead(const Sequence& sequence, const char* position, const char* end);
  const char* end() const { return text_.data() + text_.size(); }

  const Pattern& pattern_;
  absl::string_view text_;
  std::vector<Memo> memos_;  // [num_memos_], or empty as long as none is needed
};

}  // namespace attendant
