// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/outputs.h"
#include "kernels/heads/sentence_head.h"
#include "server/models/sentence/model_folder.h"
#include "server/text/tokenizer.h"

namespace attendant {

// The steps from the hidden states of a text to one vector: pooling, modules, normalization.
struct SentenceSettings {
  std::vector<Pooling> poolings = {Pooling::kMean};  // their vectors are concatenated
  bool include_prompt = true;                        // false: a prompt's tokens are not pooled
  SentenceHead head;
  bool normalize = false;
  bool lowercases = false;      // texts become lower case before the tokenizer's normalizer
  int64_t max_text_tokens = 0;  // texts are cut here
  int64_t max_active_dims = 0;  // top_k of sparse vectors where a request has none; 0: all
  std::optional<TruncationSide> truncation_side{};  // none: the tokenizer's own
  bool leaves_template = false;  // sentence-transformers would put texts into a chat template

  int64_t embedding_dims(int64_t hidden) const {
    return head.OutputWidth(static_cast<int64_t>(poolings.size()) * hidden);
  }
};

// "mean", "cls", "weightedmean", as sentence-transformers names it; empty for kNone.
absl::string_view PoolingName(Pooling pooling);

// Reads what sentence-transformers wrote beside the checkpoint in `folder`: modules.json names
// the steps (Transformer, Pooling, then Dense, LayerNorm, Normalize and Dropout in any order), its
// pooling step's config.json the pooling (either as pooling_mode or as pooling_mode_*),
// sentence_bert_config.json (or its old names) max_seq_length and do_lower_case, else
// tokenizer_config.json model_max_length, and that file truncation_side;
// config_sentence_transformers.json truncate_dim, which cuts embeddings behind all modules without
// normalizing them again, and max_active_dims. Without modules.json sentence-transformers makes
// each text a message of the tokenizer's chat template, if it has one; here it stays as it is, as
// for transformers. Without these files the defaults hold: mean, not normalized,
// max_sequence_tokens. max_text_tokens is never above `max_sequence_tokens`. INVALID_ARGUMENT,
// naming file and field, for a file that is not valid, contradicts itself or `hidden`;
// UNIMPLEMENTED for other steps and poolings: their answers would be silently wrong.
absl::StatusOr<SentenceSettings> ReadSentenceSettings(const ModelFolder& folder, int64_t hidden,
                                                      int64_t max_sequence_tokens);

}  // namespace attendant
