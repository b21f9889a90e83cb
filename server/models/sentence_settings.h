// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/core/outputs.h"

namespace attendant {

// How a checkpoint turns a text into one vector.
struct SentenceSettings {
  Pooling pooling = Pooling::kMean;
  bool normalize = false;
  int64_t max_text_tokens = 0;  // texts are cut here
};

// Reads what sentence-transformers wrote beside the checkpoint in `directory`: modules.json names
// the steps, its pooling step's config.json the pooling (either as pooling_mode or as
// pooling_mode_*), sentence_bert_config.json max_seq_length, else tokenizer_config.json
// model_max_length. Without these files the defaults hold: mean, not normalized,
// max_sequence_tokens. max_text_tokens is never above `max_sequence_tokens`. INVALID_ARGUMENT,
// naming file and field, for a file that is not valid, contradicts itself or `hidden`;
// UNIMPLEMENTED for other steps and poolings: their answers would be
// silently wrong.
absl::StatusOr<SentenceSettings> ReadSentenceSettings(const std::string& directory, int64_t hidden,
                                                      int64_t max_sequence_tokens);

}  // namespace attendant
