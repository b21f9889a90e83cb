// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernels/core/encoder_config.h"

namespace attendant {

class JsonNode;

// Reads a BERT-type model's config.json, as transformers writes it. What comes back passes
// Validate.
//
// Required: model_type ("bert"), num_hidden_layers, num_attention_heads, hidden_size,
// intermediate_size, vocab_size, max_position_embeddings. With transformers' defaults when absent:
// type_vocab_size (2), layer_norm_eps (1e-12), hidden_act ("gelu"), position_embedding_type
// ("absolute").
//
// NOT_FOUND without the file; INVALID_ARGUMENT, naming file and field, for what is missing, of the
// wrong type, out of range or contradictory; UNIMPLEMENTED for a valid model of another
// architecture.
absl::StatusOr<EncoderConfig> ReadEncoderConfig(const std::string& path);
// The same of a file that has been read already.
absl::StatusOr<EncoderConfig> ReadEncoderConfig(const JsonNode& json);

}  // namespace attendant
