// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/chat_template/chat_template.h"
#include "server/text/tokenizer.h"

namespace attendant {

// The text that a chat template makes of a query and a document, with places for the two.
struct PairForm {
  static constexpr int kQuery = 0, kDocument = 1;  // the unknown texts

  ChatText text;  // each of the two once
  // The last tokens, which neither text changes. A sequence of max_tokens ends in them: they are
  // written over what a cut left there, as sentence-transformers does.
  std::vector<int32_t> suffix;

  int64_t fixed_bytes() const;
};

// The tokens of the pair as one text, without special tokens around it: those of the template are
// in its text. Where the query or document has one, it counts too, as for transformers. Errors are
// those of Tokenizer::TokenizePair.
absl::StatusOr<TokenizedText> TokenizePair(const PairForm& form, const Tokenizer& tokenizer,
                                           absl::string_view query, absl::string_view document,
                                           TokenizerOptions options);

}  // namespace attendant
