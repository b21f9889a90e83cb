// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "kernels/core/encoder_config.h"

namespace attendant {

class JsonNode;

// Reads what transformers 5 keeps in `rope_parameters`: `rope_theta`, `default_base` when absent.
// UNIMPLEMENTED for a `rope_type` that is not "default", and for heads that turn in part.
absl::Status ReadRopeParameters(const JsonNode& parameters, double default_base, Rotary& rotary);

}  // namespace attendant
