// SPDX-License-Identifier: Apache-2.0
// The pre-tokenizers that look at one character at a time: Digits, Punctuation, WhitespaceSplit.
#include <memory>

#include "server/text/pre_tokenizers/pre_tokenizer_kinds.h"
#include "server/text/pre_tokenizers/segments.h"
#include "server/text/unicode/characters.h"
#include "server/text/unicode/utf8.h"

namespace attendant {
namespace {

using IsSeparator = bool (*)(char32_t);

class CharacterCuts final : public PreTokenizer {
 public:
  CharacterCuts(IsSeparator is_separator, SeparatorBehavior behavior, bool cuts_at_spaces)
      : is_separator_(is_separator), behavior_(behavior), cuts_at_spaces_(cuts_at_spaces) {}

  bool Split(const Piece& piece, Visitor visit) const override {
    SegmentJoiner segments(piece, behavior_, visit);
    const char* const begin = piece.text.data();
    const char* const end = begin + piece.text.size();
    size_t text_end = 0;  // of the characters between separators
    for (const char* position = begin; position < end;) {
      const auto here = static_cast<size_t>(position - begin);
      const bool separator = is_separator_(NextCharacter(position));
      text_end = static_cast<size_t>(position - begin);
      if (separator && (!segments.Add(here, false) || !segments.Add(text_end, true))) return false;
    }
    return segments.Add(text_end, false) && segments.Finish();
  }
  bool cuts_at_spaces() const override { return cuts_at_spaces_; }

 private:
  IsSeparator is_separator_;
  SeparatorBehavior behavior_;
  bool cuts_at_spaces_;
};

}  // namespace

std::unique_ptr<PreTokenizer> ReadDigits(const JsonFields& fields) {
  const bool individual = fields.Bool("individual_digits");
  return std::make_unique<CharacterCuts>(
      IsNumeric, individual ? SeparatorBehavior::kIsolated : SeparatorBehavior::kContiguous, false);
}

std::unique_ptr<PreTokenizer> ReadPunctuation(const JsonFields& fields) {
  const SeparatorBehavior behavior =
      fields.Has("behavior") ? ReadSeparatorBehavior(fields) : SeparatorBehavior::kIsolated;
  return std::make_unique<CharacterCuts>(IsPunctuation, behavior, false);
}

std::unique_ptr<PreTokenizer> ReadWhitespaceSplit(const JsonFields&) {
  return std::make_unique<CharacterCuts>(IsWhitespace, SeparatorBehavior::kRemoved, true);
}

}  // namespace attendant
