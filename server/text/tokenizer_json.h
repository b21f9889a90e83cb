// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/added_tokens.h"
#include "server/text/decoders/decoder.h"
#include "server/text/models/token_model.h"
#include "server/text/normalizers/normalizer.h"
#include "server/text/pre_tokenizers/pre_tokenizer.h"
#include "server/text/sequence_template.h"
#include "server/text/token_strings.h"
#include "server/text/tokenizer_config.h"

namespace attendant {

// All that a tokenizer.json says about ids.
struct TokenizerParts {
  std::vector<AddedToken> added_tokens;
  std::unique_ptr<Normalizer> normalizer;       // null: text stays as it is
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // null: text is one piece
  std::unique_ptr<TokenModel> model;
  SequenceTemplate sequence;
  TokenStrings strings;
  // Null: spaces join tokens. UNIMPLEMENTED or INVALID_ARGUMENT: the file's cannot be used, which
  // does not keep it from making ids.
  absl::StatusOr<std::unique_ptr<Decoder>> decoder = nullptr;
  bool truncates_left = false;
  int64_t vocab = 0;  // one more than the largest id
};

// The largest known vocabularies, of any tokenizer type, have half of this.
inline constexpr int64_t kMaxTokenizerFileBytes = int64_t{64} << 20;

// Reads the contents of a tokenizer.json. Trusts nothing in it: INVALID_ARGUMENT, naming the
// member, for a value that is malformed or contradicts another; UNIMPLEMENTED, naming the part, for
// a tokenizer of another kind, or one that transformers would make otherwise with `settings`.
absl::StatusOr<TokenizerParts> ParseTokenizerJson(absl::string_view contents,
                                                  const TokenizerSettings& settings = {});

}  // namespace attendant
