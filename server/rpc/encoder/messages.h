// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "attendant/v1/encoder.pb.h"
#include "server/models/model_registry.h"
#include "server/requests/encode_run.h"
#include "server/requests/number_format.h"

namespace attendant {

// How an answer is written, as the request said.
struct ResponseFormat {
  NumberFormat numbers = NumberFormat::kF32;
  bool last_hidden_state = false;
  bool token_ids = false;
  bool padded = false;  // hidden states as [batch, seq, hidden]
};

struct DecodedRequest {
  EncodeInput input;  // without method and deadline
  ResponseFormat format;
};

// attendant.v1's words to ours. INVALID_ARGUMENT for what this protocol alone can get wrong:
// unknown enum values, an id that is too long, a padded batch whose counts disagree. Checks counts
// before it copies.
absl::StatusOr<DecodedRequest> DecodeRequest(const v1::EncodeRequest& request,
                                             const EncodeLimits& limits);

// Fills sequences and tensors, and frees `output`'s tensors on the way.
void EncodeResponseTensors(const ResponseFormat& format, EncodeOutput& output,
                           v1::EncodeResponse& response);

v1::ModelState EncodeModelState(ModelState state);
void EncodeModelInfo(const ModelStatus& status, v1::ModelInfo& info);

}  // namespace attendant
