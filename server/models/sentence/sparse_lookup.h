// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/heads/head.h"
#include "server/models/sentence/model_folder.h"
#include "server/models/sentence/prompts.h"
#include "server/text/tokenizer.h"

namespace attendant {

// The weight table of an inference-free sparse model. The sparse vector of a query has the weight
// of each token of the text; the encoder does not run. Immutable after loading, thread-safe.
struct SparseLookup {
  std::vector<float> weights;            // [ids]
  int64_t max_tokens = 0;                // of a text, without special tokens
  std::unique_ptr<Tokenizer> tokenizer;  // null: the model's own

  // The weights of these tokens, as HeadResult of kSparse: each id once, without those of weight 0.
  // With `top_k` > 0 at most so many, those farthest from 0 (of equal ones, the lower ids).
  // REQUIRES: the tokenizer made the ids.
  HeadResult Weigh(std::span<const int32_t> token_ids, int64_t top_k) const;
};

// Reads what `query` has: `weight` of model.safetensors, config.json, tokenizer.json and
// tokenizer_config.json's model_max_length of its module, or a file of tokens and weights, in which
// words that are no token are left out. Texts are tokenized by `tokenizer` where the module's
// tokenizer.json has the same bytes as the one of `encoder_directory`. `vocab` is the encoder's.
// INVALID_ARGUMENT, naming the file and both numbers, for what is missing, not valid or does not
// fit; UNIMPLEMENTED for an option that is not supported.
absl::StatusOr<SparseLookup> ReadSparseLookup(const QueryFolder& query,
                                              const std::string& encoder_directory,
                                              const Tokenizer& tokenizer, int64_t vocab);

// Marks the prompts whose texts are queries: `query`, and with `query.is_default` every other but
// `document`. Adds these two where they are not there; one of them becomes the default where there
// is none.
void AddLookup(const QueryFolder& query, Prompts& prompts);

}  // namespace attendant
