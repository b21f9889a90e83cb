// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/text/models/token_model.h"
#include "server/text/pre_tokenizers/pre_tokenizer.h"
#include "server/text/sequence_template.h"
#include "server/text/tokenizer.h"

namespace attendant {

// The offsets of the tokens of one text, in the order in which they are found, as the `tokenizers`
// library says them.
class TextOffsets {
 public:
  // Beside a text they take up to 80 times its bytes.
  static constexpr size_t kMaxTextBytes = size_t{2} << 20;

  // Views `text`. `trims`: Trim will be called. REQUIRES: valid UTF-8, at most kMaxTextBytes.
  TextOffsets(absl::string_view text, OffsetUnit unit, bool trims);

  const std::vector<TokenOffset>& values() const { return values_; }

  // Where a part of the text begins. REQUIRES: `part` views the text.
  uint32_t PlaceOf(absl::string_view part) const {
    return static_cast<uint32_t>(part.data() - text_.data());
  }

  // A token that stands in the text as it is.
  void AddLiteral(absl::string_view part);
  // A token that stands for a span of `piece`; `string` is the token's own. REQUIRES: the piece has
  // sources.
  void Add(const Piece& piece, TokenSpan span, absl::string_view string);

  // Takes the whitespace at the ends of tokens away, as a byte-level processor does.
  // `text`: 0, or 1 for the second one of a pair.
  void Trim(const OffsetTrim& trim, size_t text);

  // Keeps `room` of the offsets. REQUIRES: there are more.
  void Cut(size_t room, TruncationSide side);

 private:
  // The whitespace at a token's ends.
  struct Spaces {
    int32_t leading = 0;
    int32_t trailing = 0;
  };

  static Spaces CountSpaces(absl::string_view token);
  void AddBytes(size_t begin, size_t end, absl::string_view string);
  TokenOffset InCharacters(size_t begin, size_t end) const;
  // So many characters behind, or before, an offset. None: there are fewer before it.
  uint32_t Forward(uint32_t at, uint32_t characters) const;
  std::optional<uint32_t> Backward(uint32_t at, uint32_t characters) const;

  absl::string_view text_;
  bool trims_;
  std::vector<uint32_t> character_of_byte_;  // [text_.size()], or empty: offsets count bytes
  std::vector<TokenOffset> values_;
  std::vector<Spaces> spaces_;  // of each token, if trims_
};

}  // namespace attendant
