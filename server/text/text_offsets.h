// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/text/base/character_index.h"
#include "server/text/models/token_model.h"
#include "server/text/pre_tokenizers/pre_tokenizer.h"
#include "server/text/sequence_template.h"
#include "server/text/tokenizer.h"

namespace attendant {

// The whitespace at a token's ends, in characters.
struct EndSpaces {
  int32_t leading = 0;
  int32_t trailing = 0;
};

// Counts the whitespace of added tokens that are found one after the other in one text. A token
// that takes in the whitespace behind it leaves it to the next ones, which may be whitespace
// themselves: none of it is counted for each of them.
class AddedTokenSpaces {
 public:
  // REQUIRES: `token` is a part of that text, behind those before.
  EndSpaces Count(absl::string_view token);

 private:
  absl::string_view run_;   // a token that is nothing else, without what is before the last token
  int32_t characters_ = 0;  // of the run
};

// The offsets of the tokens of one text, in the order in which they are found, as the `tokenizers`
// library says them.
class TextOffsets {
 public:
  // The longest text with offsets: the offsets take up to 80 times its bytes.
  static constexpr size_t kMaxTextBytes = size_t{2} << 20;

  // Views `text`. `trims`: Trim will be called. REQUIRES: valid UTF-8, at most kMaxTextBytes.
  TextOffsets(absl::string_view text, OffsetUnit unit, bool trims);

  const std::vector<TokenOffset>& values() const { return values_; }

  // The offset in bytes of a part of the text. REQUIRES: `part` views the text.
  uint32_t PlaceOf(absl::string_view part) const {
    return static_cast<uint32_t>(part.data() - text_.data());
  }

  // An added token that stands in the text as it is.
  void AddLiteral(absl::string_view part, AddedTokenSpaces& spaces);
  // An added token that stands in normalized text, as a piece.
  void AddNormalized(const Piece& piece, AddedTokenSpaces& spaces);
  // A token that stands for a span of `piece`; `string` is the token's own. REQUIRES: the piece has
  // sources.
  void Add(const Piece& piece, ByteSpan span, absl::string_view string);

  // Takes the whitespace at the ends of tokens away, as a byte-level processor does.
  // `text`: 0, or 1 for the second one of a pair.
  void Trim(const OffsetTrim& trim, size_t text);

  // Keeps `room` of the offsets. REQUIRES: there are more.
  void Cut(size_t room, TruncationSide side);

 private:
  // Without its whitespace.
  void AddBytes(size_t begin, size_t end);
  void AddSpan(const Piece& piece, ByteSpan span);
  TokenOffset InCharacters(size_t begin, size_t end) const;
  // The offset `characters` characters after `at`, or before it. Backward gives none if there are
  // fewer.
  uint32_t Forward(uint32_t at, uint32_t characters);
  std::optional<uint32_t> Backward(uint32_t at, uint32_t characters);
  const CharacterIndex& Index();

  absl::string_view text_;
  bool trims_;
  std::vector<uint32_t> character_of_byte_;  // [text_.size()], or empty: offsets count bytes
  std::vector<TokenOffset> values_;
  std::vector<EndSpaces> spaces_;        // of each token, if trims_
  std::optional<CharacterIndex> index_;  // where offsets count bytes, once it is needed
};

}  // namespace attendant
