// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/pattern.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/text/unicode/characters.h"
#include "server/text/unicode/utf8.h"

namespace attendant {

void CharacterSet::AddRange(char32_t first, char32_t last) { ranges_.emplace_back(first, last); }

void CharacterSet::Seal() {
  for (uint32_t c = 0; c < kCharacterClasses; ++c) classes_[c] = HasClass(c);
  for (char32_t c = 0; c < 0x80; ++c) ascii_[c] = Find(c);
}

bool CharacterSet::MayContainOthers() const {
  return inverted_ || classes_.any() ||
         std::any_of(ranges_.begin(), ranges_.end(),
                     [](const auto& range) { return range.second >= 0x80; });
}

bool CharacterSet::HasClass(uint32_t character_class) const {
  const bool whitespace = (character_class & kWhitespaceClass) != 0;
  return (character_class & categories_) != 0 || (whitespace ? whitespace_ : non_whitespace_) ||
         std::any_of(outside_.begin(), outside_.end(),
                     [=](uint32_t categories) { return (character_class & categories) == 0; });
}

bool CharacterSet::Find(char32_t character) const {
  bool found = classes_.any() && classes_[CharacterClass(character)];
  for (const auto& [first, last] : ranges_) {
    found = found || (character >= first && character <= last);
  }
  return found != inverted_;
}

Pattern Pattern::Literal(absl::string_view text) {
  Pattern pattern;
  Sequence& sequence = pattern.sequences_.emplace_back();
  for (const char* position = text.data(); position < text.data() + text.size();) {
    Item& item = sequence.items.emplace_back();
    const char32_t character = NextCharacter(position);
    item.set.AddRange(character, character);
    item.set.Seal();
  }
  pattern.IndexFirstCharacters();
  return pattern;
}

void Pattern::IndexFirstCharacters() {
  for (size_t i = 0; i < sequences_.size(); ++i) {
    for (const Item& item : sequences_[i].items) {
      for (char32_t c = 0; c < 0x80; ++c) {
        may_start_[c] |= uint64_t{item.set.Contains(c)} << i;
      }
      may_start_[0x80] |= uint64_t{item.set.MayContainOthers()} << i;
      if (item.min > 0) break;
    }
  }
}

Pattern::Match Pattern::Find(absl::string_view text, size_t from) const {
  const char* const end = text.data() + text.size();
  for (const char* start = text.data() + from; start < end; start += CharacterBytes(*start)) {
    const auto first = static_cast<unsigned char>(*start);
    uint64_t candidates = may_start_[first < 0x80 ? first : 0x80];
    for (; candidates != 0; candidates &= candidates - 1) {
      const Sequence& sequence = sequences_[static_cast<size_t>(__builtin_ctzll(candidates))];
      const char* const match = MatchFrom(sequence, 0, start, end);
      if (match != nullptr) {
        return {static_cast<size_t>(start - text.data()), static_cast<size_t>(match - text.data())};
      }
    }
  }
  return {text.size(), text.size()};
}

// Where the sequence's items from `item` on end when they match at `position`, else null.
const char* Pattern::MatchFrom(const Sequence& sequence, size_t item, const char* position,
                               const char* end) {
  if (item == sequence.items.size()) return IsAhead(sequence, position, end) ? nullptr : position;
  const Item& now = sequence.items[item];
  uint32_t count = 0;
  while (count < now.max && position < end) {
    const char* next = position;
    if (!now.set.Contains(NextCharacter(next))) break;
    position = next;
    ++count;
  }
  for (; count >= now.min; --count) {
    const char* const match = MatchFrom(sequence, item + 1, position, end);
    if (match != nullptr || count == now.min) return match;
    do --position;
    while ((static_cast<unsigned char>(*position) & 0xC0) == 0x80);
  }
  return nullptr;
}

bool Pattern::IsAhead(const Sequence& sequence, const char* position, const char* end) {
  return sequence.has_ahead && position < end && sequence.ahead.Contains(NextCharacter(position));
}

double Pattern::ReplacedTimes(absl::string_view content) const {
  double min_bytes = std::numeric_limits<double>::infinity();  // of a match
  for (const Sequence& sequence : sequences_) {
    double bytes = 0;
    for (const Item& item : sequence.items)
      bytes += item.min * (item.set.MayContainAscii() ? 1 : 2);
    min_bytes = std::min(min_bytes, bytes);
  }
  return std::max(1.0, static_cast<double>(content.size()) / min_bytes);
}

void Pattern::AppendReplaced(absl::string_view text, absl::string_view content, size_t max_bytes,
                             std::string& out) const {
  for (size_t done = 0; done < text.size() && out.size() <= max_bytes;) {
    const Match match = Find(text, done);
    absl::StrAppend(&out, text.substr(done, match.begin - done));
    if (match.begin < match.end) absl::StrAppend(&out, content);
    done = match.end;
  }
}

}  // namespace attendant
