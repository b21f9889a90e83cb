// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/heads/token_head.h"

namespace attendant {

class JsonNode;
class TensorStore;

// The heads on tokens of a checkpoint: the one that the first of config.json's `architectures` has,
// if there is one. An encoder that was saved with the name of a masked language model, but without
// any tensor of its head, has none. The decoder of a masked language model is its own tensor, or
// else the token embeddings. Weights point into `store` and into `weights`.
// INVALID_ARGUMENT, naming `directory`, the field or tensor and both shapes, for what is missing or
// contradictory; UNIMPLEMENTED for an option that is not computed.
absl::StatusOr<std::vector<TokenHead>> ReadTokenHeads(const JsonNode& json,
                                                      const EncoderConfig& config,
                                                      const EncoderWeights& weights,
                                                      const std::string& directory,
                                                      TensorStore& store);

// The values of packed heads that no tensor of their own has: a decoder that is the token
// embeddings. 0 as well for what ReadTokenHeads would refuse.
int64_t CountTiedValues(const JsonNode& json, const EncoderConfig& config,
                        const TensorStore& store);

}  // namespace attendant
