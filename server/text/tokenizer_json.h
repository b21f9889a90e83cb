// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/added_tokens.h"
#include "server/text/normalizer.h"
#include "server/text/sequence_template.h"
#include "server/text/wordpiece.h"

namespace attendant {

// All that a BERT-type tokenizer.json says about ids.
struct TokenizerConfig {
  std::vector<AddedToken> added_tokens;
  NormalizerConfig normalizer;
  WordPieceConfig model;
  SequenceTemplate sequence;
  int64_t vocab = 0;  // one more than the largest id
};

// The largest known vocabularies, of any tokenizer type, have half of this.
inline constexpr int64_t kMaxTokenizerFileBytes = int64_t{64} << 20;

// Reads the contents of a tokenizer.json. Trusts nothing in it: INVALID_ARGUMENT, naming the
// member, for a value that is malformed or contradicts another; UNIMPLEMENTED, naming the part, for
// a tokenizer of another kind.
absl::StatusOr<TokenizerConfig> ParseTokenizerJson(absl::string_view contents);

}  // namespace attendant
