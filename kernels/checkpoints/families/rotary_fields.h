// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "kernels/core/encoder_config.h"

namespace attendant {

class JsonNode;

// Reads into `config.rotary` the config's `rope_scaling`, its older name, or else its
// `rope_parameters`: the first that is not empty. The base, where they have none, is its own
// `rope_theta`, if it has one, else it stays. The positions of long waves are its own
// `original_max_position_embeddings`, else theirs, else `config.max_positions`. UNIMPLEMENTED for
// another `rope_type` (else `type`) than "default" and "llama3", and for heads that turn in part.
absl::Status ReadRopeParameters(const JsonNode& json, EncoderConfig& config);

// Reads transformers 5's list `layer_types`, one for each layer: "full_attention", or
// "sliding_attention" of local layers. INVALID_ARGUMENT where it is not as long as there are
// layers; UNIMPLEMENTED for another type.
absl::Status ReadLayerTypes(const JsonNode& json, EncoderConfig& config);

// ReadRopeParameters with an object for each layer type: that of local layers goes to
// `local_rotary`.
absl::Status ReadRopeOfLayerTypes(const JsonNode& json, EncoderConfig& config);

}  // namespace attendant
