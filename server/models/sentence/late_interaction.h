// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/core/encoder_config.h"
#include "kernels/heads/token_head.h"
#include "kernels/io/json_folder.h"
#include "server/models/sentence/prompts.h"
#include "server/text/tokenizer.h"

namespace attendant {

// The tokenization options of a ColBERT model, as its files say: markers, lengths and fillers of
// queries and documents.
struct LateInteraction {
  struct Side {
    std::string marker;  // the token behind the first one; empty: none
    // The marker and special tokens included; 0: the model's limit for texts.
    int64_t max_tokens = 0;
  };
  Side query = {"[Q] ", 32};
  Side document = {"[D] ", 180};
  bool expands_queries = true;         // with `filler`
  int64_t expanded_tokens = 0;         // at least; 0: query.max_tokens
  std::string filler{};                // empty: the mask token
  bool attends_to_expansion = false;   // else no token attends to those mask tokens
  std::vector<std::string> skipped{};  // documents have no vector for these tokens

  bool has_unattended_tokens() const { return expands_queries && !attends_to_expansion; }
};

// Reads the options of a ColBERT model. If modules.json has a MultiVectorMask,
// sentence-transformers' MultiVectorEncoder wrote the folder: its markers are prompts, and the
// other options are read from sentence_bert_config.json (query_length, document_length,
// query_expansion) and from the module (skiplist_words). Else reads
// config_sentence_transformers.json as PyLate writes it (query_prefix, document_prefix,
// query_length, document_length, do_query_expansion, attend_to_expansion_tokens, skiplist_words),
// and what it lacks from artifact.metadata as Stanford's code writes it (query_token_id,
// doc_token_id, query_maxlen, doc_maxlen, attend_to_mask_tokens, mask_punctuation). Without both,
// PyLate's defaults hold: those above, and punctuation is skipped. INVALID_ARGUMENT, naming file
// and field, for a file that is not valid; UNIMPLEMENTED for an option that is not computed.
absl::StatusOr<LateInteraction> ReadLateInteraction(const JsonFolder& folder);

// Calls ReadLateInteraction if one of `heads` is of ColBERT; else unset.
absl::StatusOr<std::optional<LateInteraction>> FindLateInteraction(
    const JsonFolder& folder, std::span<const TokenHead> heads);

// The ids of the words to skip, ascending. Words that are no token are left out.
std::vector<int32_t> FindSkipped(const LateInteraction& late, const Tokenizer& tokenizer);

// Gives the prompts `query` and `document` their forms, and adds them where they are not there;
// `document` becomes the default where there is none. Sequences have at most `max_tokens`.
// INVALID_ARGUMENT for a marker, or a mask token that queries need, that is no token of the
// tokenizer, and for a length without room for the special tokens.
absl::Status AddTextForms(const LateInteraction& late, const JsonFolder& folder,
                          const Tokenizer& tokenizer, int64_t max_tokens, Prompts& prompts);

// UNIMPLEMENTED where a layer's window may keep a mask token of a query from all tokens that it may
// attend to: those of the text. REQUIRES: AddTextForms was called.
absl::Status CheckExpansion(const EncoderConfig& config, const std::string& directory,
                            const Tokenizer& tokenizer, const Prompts& prompts);

}  // namespace attendant
