// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/io/json_file.h"
#include "server/text/base/literals.h"

namespace attendant {

// The special tokens that EsmTokenizer of transformers puts around texts, and in place of what it
// does not know.
struct EsmTokens {
  std::string cls = "<cls>", unk = "<unk>";
  std::optional<std::string> eos = "<eos>";  // none: the file says null
};

// Of tokenizer_config.json, and of special_tokens_map.json as far as it counts. UNIMPLEMENTED for
// split_special_tokens.
absl::StatusOr<EsmTokens> ReadEsmTokens(const JsonNode& config, const JsonNode& map);

inline constexpr size_t kMaxEsmTokens = size_t{1} << 16;  // the largest known have 4,107

// The tokenizer.json that does what EsmTokenizer does with a vocab.txt: each of its tokens is found
// in texts as special ones are, the longest first; between them, each word is an unknown token.
// `named` are the tokens that the other files name. INVALID_ARGUMENT for a vocabulary that is
// malformed, lacks a named token or has more than kMaxEsmTokens; UNIMPLEMENTED for a token that is
// found as a single word only.
absl::StatusOr<std::string> EsmTokenizerJson(absl::string_view vocabulary, const EsmTokens& tokens,
                                             const std::vector<Literal>& named);

}  // namespace attendant
