// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/status/status.h"
#include "attendant/v1/encoder.pb.h"
#include "kernels/core/pooling.h"
#include "server/requests/encode_types.h"

// The spans of late chunking in the messages of attendant.v1.Encoder.
namespace attendant {

// Adds the spans and chunks that the request asks for. INVALID_ARGUMENT where the begins and ends
// of a sequence are not equally many, or none.
absl::Status SpansFromProto(const v1::EncodeRequest& request, EncodeInput& input);

void SpansToProto(std::span<const TokenSpan> spans, v1::SequenceInfo& info);

}  // namespace attendant
