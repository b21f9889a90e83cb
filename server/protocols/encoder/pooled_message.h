// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attendant/v1/encoder.pb.h"
#include "server/protocols/encoder/messages.h"
#include "server/requests/encode_types.h"

namespace attendant {

// Adds the embeddings of all sequences or spans, as numbers or quantized, and the scales of the
// latter. REQUIRES: at least one sequence; each has its pooled vectors.
void AddPooled(const AnswerForm& form, const EncodeOutput& output, v1::EncodeResponse& response);

}  // namespace attendant
