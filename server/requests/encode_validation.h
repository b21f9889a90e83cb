// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "server/batching/request.h"
#include "server/limits/limits.h"
#include "server/models/encoder_model.h"
#include "server/requests/encode_types.h"

namespace attendant {

// Tokenizes, checks everything, and drops masked tokens, before memory is spent that the request
// has not paid for itself. Returns the work for the model's batcher: the sequences that have an
// unmasked token. Fills `output` with the answer so far: an entry for each of the client's
// sequences, without results. INVALID_ARGUMENT names the field, its value and the limit.
absl::StatusOr<WorkRequest> ValidateEncode(const EncoderModel& model, const EncodeLimits& limits,
                                           EncodeInput input, EncodeOutput& output);

}  // namespace attendant
