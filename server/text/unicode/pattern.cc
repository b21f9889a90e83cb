// SPDX-License-Identifier: Apache-2.0
#include "server/text/unicode/pattern.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/text/unicode/characters.h"
#include "server/text/unicode/utf8.h"

namespace attendant {

void CharacterSet::AddRange(char32_t first, char32_t last) { ranges_.emplace_back(first, last); }

void CharacterSet::AddOutside(uint32_t major_categories) {
  const bool known =
      std::find(outside_.begin(), outside_.end(), major_categories) != outside_.end();
  if (!known) outside_.push_back(major_categories);
}

void CharacterSet::Seal() {
  std::sort(ranges_.begin(), ranges_.end());
  std::vector<std::pair<char32_t, char32_t>> apart;
  for (const auto& [first, last] : ranges_) {
    if (!apart.empty() && first <= apart.back().second + 1) {
      apart.back().second = std::max(apart.back().second, last);
    } else {
      apart.emplace_back(first, last);
    }
  }
  ranges_ = std::move(apart);
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
  if (!found) {
    const auto behind =
        std::upper_bound(ranges_.begin(), ranges_.end(), character,
                         [](char32_t wanted, const auto& range) { return wanted < range.first; });
    found = behind != ranges_.begin() && character <= std::prev(behind)->second;
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
  pattern.Finish();
  return pattern;
}

void Pattern::Finish() {
  for (size_t i = 0; i < sequences_.size(); ++i) {
    if (MayRunInVain(sequences_[i])) {
      sequences_[i].first_memo = num_memos_;
      num_memos_ += sequences_[i].items.size() + 1;
    }
    for (const Item& item : sequences_[i].items) {
      for (char32_t c = 0; c < 0x80; ++c) {
        may_start_[c] |= uint64_t{item.set.Contains(c)} << i;
      }
      may_start_[0x80] |= uint64_t{item.set.MayContainOthers()} << i;
      if (item.min > 0) break;
    }
  }
}

// Whether an item that runs over many characters may have to give them back: something behind it
// can fail.
bool Pattern::MayRunInVain(const Sequence& sequence) {
  bool can_fail = sequence.has_ahead;
  uint32_t num_optional = 0;  // characters, each of which doubles the ways to try
  for (size_t i = sequence.items.size(); i-- > 0;) {
    const Item& item = sequence.items[i];
    if (can_fail && item.max - item.min > 1) return true;
    num_optional += can_fail ? item.max - item.min : 0;
    can_fail = can_fail || item.min > 0;
  }
  return num_optional > 2;
}

Pattern::Match Pattern::Matcher::Find(size_t from) {
  const char* const end = text_.data() + text_.size();
  for (const char* start = text_.data() + from; start < end; start += CharacterBytes(*start)) {
    const auto first = static_cast<unsigned char>(*start);
    uint64_t candidates = pattern_.may_start_[first < 0x80 ? first : 0x80];
    for (; candidates != 0; candidates &= candidates - 1) {
      const Sequence& sequence =
          pattern_.sequences_[static_cast<size_t>(__builtin_ctzll(candidates))];
      const char* const match = sequence.first_memo == kNoMemo
                                    ? MatchPlainly(sequence, 0, start, end)
                                    : MatchWithMemos(sequence, 0, start);
      if (match != nullptr) {
        return {static_cast<size_t>(start - text_.data()),
                static_cast<size_t>(match - text_.data())};
      }
    }
  }
  return {text_.size(), text_.size()};
}

// Where the sequence's items from `item` on end when they match at `position`, else null.
const char* Pattern::Matcher::MatchPlainly(const Sequence& sequence, size_t item,
                                           const char* position, const char* end) {
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
    const char* const match = MatchPlainly(sequence, item + 1, position, end);
    if (match != nullptr || count == now.min) return match;
    position = CharacterBefore(position);
  }
  return nullptr;
}

// The same. Whether items match at a place does not depend on those before them.
const char* Pattern::Matcher::MatchWithMemos(const Sequence& sequence, size_t item,
                                             const char* position) {
  if (memos_.empty()) memos_.resize(pattern_.num_memos_);
  Memo& memo = memos_[sequence.first_memo + item];
  if (memo.Fails(position)) return nullptr;
  const char* const match = TryAll(sequence, item, position);
  if (match == nullptr) memo.AddFailure(position);
  return match;
}

const char* Pattern::Matcher::TryAll(const Sequence& sequence, size_t item, const char* position) {
  if (item == sequence.items.size()) return IsAhead(sequence, position, end()) ? nullptr : position;
  const Item& now = sequence.items[item];
  Memo& memo = memos_[sequence.first_memo + item];
  const bool has_end = now.max != kMany;
  const char* least = now.min == 0 ? position : nullptr;  // where the item may end first
  const char* last = position;                            // and where it ends when it takes all
  for (uint32_t count = 0; count < now.max && last < end();) {
    if (!has_end && least != nullptr && last >= memo.run_begin && last < memo.run_end) {
      last = memo.run_end;
      break;
    }
    const char* next = last;
    if (!now.set.Contains(NextCharacter(next))) break;
    last = next;
    if (++count == now.min) least = last;
  }
  if (!has_end && last > position) memo.run_begin = position, memo.run_end = last;
  if (least == nullptr) return nullptr;
  const Memo& behind = memos_[sequence.first_memo + item + 1];
  while (true) {
    if (behind.Fails(last)) {
      last = behind.first_failure;
    } else if (const char* const match = MatchWithMemos(sequence, item + 1, last)) {
      return match;
    }
    if (last <= least) return nullptr;
    last = CharacterBefore(last);
  }
}

void Pattern::Matcher::Memo::AddFailure(const char* position) {
  const auto follows = [](const char* before, const char* after) {
    return before + CharacterBytes(*before) == after;
  };
  if (first_failure != nullptr && position < first_failure && follows(position, first_failure)) {
    first_failure = position;
  } else if (last_failure != nullptr && position > last_failure &&
             follows(last_failure, position)) {
    last_failure = position;
  } else {
    first_failure = last_failure = position;
  }
}

bool Pattern::Matcher::IsAhead(const Sequence& sequence, const char* position, const char* end) {
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
  Matcher matcher(*this, text);
  for (size_t done = 0; done < text.size() && out.size() <= max_bytes;) {
    const Match match = matcher.Find(done);
    absl::StrAppend(&out, text.substr(done, match.begin - done));
    if (match.begin < match.end) absl::StrAppend(&out, content);
    done = match.end;
  }
}

}  // namespace attendant
