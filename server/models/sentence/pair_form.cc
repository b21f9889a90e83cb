// SPDX-License-Identifier: Apache-2.0
#include "server/models/sentence/pair_form.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/text/text_offsets.h"
#include "server/text/unicode/check_utf8.h"

namespace attendant {
namespace {

// `text` up to byte `at`, or on the left from there on. A character that lies on both sides goes.
absl::string_view Cut(absl::string_view text, size_t at, TruncationSide side) {
  const bool left = side == TruncationSide::kLeft;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) {
    left ? ++at : --at;
  }
  return left ? text.substr(at) : text.substr(0, at);
}

// The end of `text` that a cut keeps, as long as offsets can be: its tokens are those of the text,
// but for some at the other end.
absl::string_view KeptEnd(absl::string_view text, TruncationSide side) {
  constexpr size_t kMost = TextOffsets::kMaxTextBytes;
  if (text.size() <= kMost) return text;
  return Cut(text, side == TruncationSide::kLeft ? text.size() - kMost : kMost, side);
}

// `text` without what is beyond its first tokens, or before its last ones.
absl::StatusOr<absl::string_view> CutToTokens(const Tokenizer& tokenizer, absl::string_view text,
                                              int64_t max_tokens, TruncationSide side) {
  const TokenizerOptions options{.max_tokens = max_tokens,
                                 .side = side,
                                 .special_tokens = false,
                                 .count = false,
                                 .offsets = OffsetUnit::kBytes};
  const absl::string_view kept = KeptEnd(text, side);
  ATTENDANT_ASSIGN_OR_RETURN(TokenizedText tokens, tokenizer.Tokenize(kept, options));
  if (!tokens.truncated() && kept.size() < text.size()) {
    ATTENDANT_ASSIGN_OR_RETURN(tokens, tokenizer.Tokenize(text, options));  // says the limit
  }
  if (!tokens.truncated() || tokens.offsets.empty()) return text;
  const bool left = side == TruncationSide::kLeft;
  return Cut(kept, left ? tokens.offsets.front().begin : tokens.offsets.back().end, side);
}

}  // namespace

int64_t PairForm::fixed_bytes() const {
  int64_t bytes = 0;
  for (const ChatPart& part : text) bytes += static_cast<int64_t>(part.fixed.size());
  return bytes;
}

absl::StatusOr<TokenizedText> TokenizePair(const PairForm& form, const Tokenizer& tokenizer,
                                           absl::string_view query, absl::string_view document,
                                           TokenizerOptions options) {
  ATTENDANT_RETURN_IF_ERROR(CheckUtf8(query, ""));
  ATTENDANT_RETURN_IF_ERROR(CheckUtf8(document, " of the second text"));
  if (options.max_second_tokens > 0) {
    ATTENDANT_ASSIGN_OR_RETURN(
        document, CutToTokens(tokenizer, document, options.max_second_tokens, options.side));
  }
  std::string whole;
  whole.reserve(static_cast<size_t>(form.fixed_bytes()) + query.size() + document.size());
  for (const ChatPart& part : form.text) {
    absl::StrAppend(&whole, part.unknown == PairForm::kQuery      ? query
                            : part.unknown == PairForm::kDocument ? document
                                                                  : part.fixed);
  }
  options.special_tokens = false;
  ATTENDANT_ASSIGN_OR_RETURN(TokenizedText tokens, tokenizer.Tokenize(whole, options));
  if (tokens.tokens_seen < options.max_tokens) return tokens;
  const size_t kept = std::min(form.suffix.size(), tokens.token_ids.size());
  std::copy_backward(form.suffix.end() - static_cast<std::ptrdiff_t>(kept), form.suffix.end(),
                     tokens.token_ids.end());
  return tokens;
}

}  // namespace attendant
