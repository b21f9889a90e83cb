// SPDX-License-Identifier: Apache-2.0
#include "server/text/text_offsets.h"

#include <algorithm>

#include "server/text/unicode/characters.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

constexpr char32_t kByteLevelSpace = 0x120;

// So many characters are walked over one by one.
constexpr uint32_t kMaxSteps = 32;

bool IsTrimmed(char32_t character) {
  return character == kByteLevelSpace || IsWhitespace(character);
}

struct TokenSpaces {
  EndSpaces ends;
  bool all = true;  // the token is nothing else
};

TokenSpaces CountSpaces(absl::string_view token) {
  TokenSpaces spaces;
  const char* const end = token.data() + token.size();
  for (const char* position = token.data(); position < end;) {
    const bool space = IsTrimmed(NextCharacter(position));
    spaces.all = spaces.all && space;
    spaces.ends.leading += spaces.all;
    spaces.ends.trailing = space ? spaces.ends.trailing + 1 : 0;
  }
  return spaces;
}

template <typename T>
void KeepSide(size_t room, TruncationSide side, std::vector<T>& values) {
  if (side == TruncationSide::kRight) return values.resize(room);
  values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(room));
}

}  // namespace

EndSpaces AddedTokenSpaces::Count(absl::string_view token) {
  const char* const end = token.data() + token.size();
  const char* const run_end = run_.data() + run_.size();
  if (token.data() >= run_.data() && token.data() < run_end && end == run_end) {
    const char* position = run_.data();
    for (; position < token.data(); --characters_) NextCharacter(position);
    run_ = token;
    return {characters_, characters_};
  }
  const TokenSpaces spaces = CountSpaces(token);
  if (spaces.all && (run_.empty() || end > run_end)) {
    run_ = token;
    characters_ = spaces.ends.leading;
  }
  return spaces.ends;
}

TextOffsets::TextOffsets(absl::string_view text, OffsetUnit unit, bool trims)
    : text_(text), trims_(trims) {
  if (unit != OffsetUnit::kCharacters) return;
  character_of_byte_.reserve(text.size());
  for (uint32_t index = 0; character_of_byte_.size() < text.size(); ++index) {
    const size_t at = character_of_byte_.size();
    character_of_byte_.resize(at + CharacterBytes(text[at]), index);
  }
}

void TextOffsets::AddLiteral(absl::string_view part, AddedTokenSpaces& spaces) {
  AddBytes(PlaceOf(part), PlaceOf(part) + part.size());
  if (trims_) spaces_.push_back(spaces.Count(part));
}

void TextOffsets::AddNormalized(const Piece& piece, AddedTokenSpaces& spaces) {
  AddSpan(piece, {0, piece.text.size()});
  if (trims_) spaces_.push_back(spaces.Count(piece.text));
}

void TextOffsets::Add(const Piece& piece, ByteSpan span, absl::string_view string) {
  AddSpan(piece, span);
  if (trims_) spaces_.push_back(CountSpaces(string).ends);
}

// The library takes a span that goes beyond its piece as one of the text.
void TextOffsets::AddSpan(const Piece& piece, ByteSpan span) {
  if (span.end > piece.text.size()) return AddBytes(span.begin, span.end);
  const size_t last = piece.sources[span.end - 1];
  AddBytes(piece.sources[span.begin], last + CharacterBytes(text_[last]));
}

void TextOffsets::AddBytes(size_t begin, size_t end) {
  const TokenOffset bytes = {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
  values_.push_back(character_of_byte_.empty() ? bytes : InCharacters(begin, end));
}

// As the library also where `end` is beyond the text's, and with bytes where `begin` is.
TokenOffset TextOffsets::InCharacters(size_t begin, size_t end) const {
  const size_t bytes = character_of_byte_.size();
  if (begin >= bytes) return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
  const uint32_t first = character_of_byte_[begin];
  if (end < bytes) return {first, character_of_byte_[end]};
  const uint32_t last = end <= bytes ? character_of_byte_[end - 1] : first + 1;
  return {first, last + 1};
}

const CharacterIndex& TextOffsets::Index() {
  if (!index_.has_value()) index_.emplace(text_);
  return *index_;
}

// Where offsets count bytes, over whole characters of the text.
uint32_t TextOffsets::Forward(uint32_t at, uint32_t characters) {
  if (!character_of_byte_.empty()) return at + characters;
  if (characters > kMaxSteps && at < text_.size()) {
    const size_t before = Index().CountBefore(at);
    const auto inside = static_cast<uint32_t>(
        std::min<size_t>(characters, Index().CountBefore(text_.size()) - before));
    at = static_cast<uint32_t>(Index().ByteOf(before + inside));
    characters -= inside;
  }
  for (; characters > 0; --characters)
    at += at < text_.size() ? static_cast<uint32_t>(CharacterBytes(text_[at])) : 1;
  return at;
}

std::optional<uint32_t> TextOffsets::Backward(uint32_t at, uint32_t characters) {
  if (!character_of_byte_.empty()) {
    return at < characters ? std::nullopt : std::optional(at - characters);
  }
  if (characters > kMaxSteps && at <= text_.size()) {
    const size_t before = Index().CountBefore(at);
    if (before < characters) return std::nullopt;
    return static_cast<uint32_t>(Index().ByteOf(before - characters));
  }
  for (; characters > 0; --characters) {
    if (at == 0) return std::nullopt;
    at = at > text_.size() ? at - 1 : PlaceOf({CharacterBefore(text_.data() + at), 0});
  }
  return at;
}

void TextOffsets::Trim(const OffsetTrim& trim, size_t text) {
  for (size_t i = 0; i < values_.size(); ++i) {
    TokenOffset& offset = values_[i];
    const auto leading = static_cast<uint32_t>(spaces_[i].leading);
    const auto trailing = static_cast<uint32_t>(spaces_[i].trailing);
    const bool is_first = (i == 0 && trim.starts_with_text[text]) || offset.begin == 0;
    const bool may_be_added = is_first && trim.add_prefix_space && leading == 1;
    if (!may_be_added) offset.begin = std::min(Forward(offset.begin, leading), offset.end);
    if (const std::optional<uint32_t> end = Backward(offset.end, trailing)) {
      offset.end = std::max(*end, offset.begin);
    }
  }
}

void TextOffsets::Cut(size_t room, TruncationSide side) {
  KeepSide(room, side, values_);
  if (trims_) KeepSide(room, side, spaces_);
}

}  // namespace attendant
