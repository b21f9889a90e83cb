// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "attendant/v1/encoder.pb.h"
#include "server/limits/limits.h"
#include "server/requests/encode_types.h"
#include "server/requests/formats/embedding_format.h"
#include "server/requests/formats/number_format.h"

// The messages of attendant.v1.Encoder, to and from the server's own words.
namespace attendant {

// INVALID_ARGUMENT for what this protocol alone can get wrong: unknown enum values, a padded
// batch whose counts disagree. Checks counts before it copies.
absl::StatusOr<EncodeInput> FromProto(const v1::EncodeRequest& request, const EncodeLimits& limits);

// The form of the answer to a request: number formats and layout.
struct AnswerForm {
  NumberFormat numbers = NumberFormat::kF32;
  NumberFormat pooled_numbers = NumberFormat::kF32;
  EmbeddingFormat pooled = EmbeddingFormat::kNumbers;
  bool padded = false;  // hidden states are [batch, seq, ..] and not [tokens, ..]
  bool token_ids = false;
  bool token_offsets = false;
};
absl::StatusOr<AnswerForm> AnswerFormFromProto(const v1::EncodeRequest& request);

// Fills sequences and tensors, and frees `output`'s tensors on the way.
void ToProto(EncodeOutput& output, const AnswerForm& form, v1::EncodeResponse& response);

}  // namespace attendant
