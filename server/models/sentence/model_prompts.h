// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/core/encoder_config.h"
#include "server/models/sentence/late_interaction.h"
#include "server/models/sentence/model_folder.h"
#include "server/models/sentence/prompts.h"
#include "server/models/sentence/sparse_lookup.h"
#include "server/text/tokenizer.h"

namespace attendant {

// The treatment of a text before the tokenizer: the prompts, and the lookup of sparse vectors.
struct ModelPrompts {
  Prompts prompts;
  std::optional<SparseLookup> lookup;  // of an inference-free sparse model
};

// The facts of a model that its prompts depend on.
struct PromptContext {
  const ModelFolder& folder;
  const EncoderConfig& config;
  const Tokenizer& tokenizer;
  const std::optional<LateInteraction>& late;  // as FindLateInteraction has it
  bool makes_sparse = false;                   // by one of its heads
  // Of a sequence: the positions of the encoder or, where a batch holds fewer, the batch's tokens.
  int64_t max_sequence_tokens = 0;
  int64_t max_text_tokens = 0;
};

// Reads the prompts of a model that takes texts, with their forms, their tokens and the lookup of
// queries. `adapter` as ReadPrompts has it. Errors are those of ReadPrompts, AddTextForms,
// CheckExpansion, AddPairForms, ReadSparseLookup and CountTokens.
absl::StatusOr<ModelPrompts> ReadModelPrompts(const PromptContext& model,
                                              const std::string& adapter = "");

}  // namespace attendant
