// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/batching/request.h"
#include "server/models/encoder_model.h"
#include "server/requests/encode_run.h"

namespace attendant {

// A request that a model can run.
struct ValidRequest {
  // What goes to the batcher: the sequences that have an unmasked token, without their masked ones.
  std::vector<SequenceInput> sequences;
  SequenceOutputs outputs;
  // The answer so far: one entry for each of the client's sequences, results still empty.
  EncodeOutput output;
  int64_t response_bytes = 0;   // of the tensors asked for, as f32, and of token strings
  int64_t attention_bytes = 0;  // of the attention weights among them
};

// Tokenizes and checks everything, before memory is spent that the request has not paid for itself.
// INVALID_ARGUMENT names the field, its value and the limit. Consumes `input`'s sequences.
absl::StatusOr<ValidRequest> ValidateRequest(const EncoderModel& model, const EncodeLimits& limits,
                                             EncodeInput& input);

}  // namespace attendant
