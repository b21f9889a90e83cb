// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "kernels/core/encoder_config.h"

namespace attendant {

class JsonNode;

// Reads an object of transformers 5: `rope_theta`, the base; where it is absent, the base stays as
// it is. Its `rope_type` (else `type`, the older name) is "default", or "llama3" with the fields of
// long waves. UNIMPLEMENTED for another one, and for heads that turn in part.
absl::Status ReadRopeFields(const JsonNode& parameters, Rotary& rotary);

// Reads the config's `rope_scaling`, its older name, or else its `rope_parameters`: the first that
// is not empty. The base, where they have none, is its own `rope_theta`, if it has one; that of
// long waves goes before theirs is `original_max_position_embeddings`. UNIMPLEMENTED as
// ReadRopeFields.
absl::Status ReadRopeParameters(const JsonNode& json, Rotary& rotary);

// Reads transformers 5's list `layer_types`, one for each layer: "full_attention", or
// "sliding_attention" of local layers. INVALID_ARGUMENT where it is not as long as there are
// layers; UNIMPLEMENTED for another type.
absl::Status ReadLayerTypes(const JsonNode& json, EncoderConfig& config);

// ReadRopeParameters with an object for each layer type: that of local layers goes to
// `local_rotary`.
absl::Status ReadRopeOfLayerTypes(const JsonNode& json, EncoderConfig& config);

}  // namespace attendant
