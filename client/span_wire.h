// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "attendant/v1/encoder.pb.h"
#include "client/types.h"

// The spans of late chunking, and where tokens come from, to and from messages.
namespace attendant::client {

// Adds the spans of `request` to the sequences of `proto`. INVALID_ARGUMENT unless there is a list
// for each sequence, or none.
absl::Status FillSpans(const EncodeRequest& request, v1::Sequences& proto);

// INTERNAL when a sequence's begins and ends are not equally many, or are no tokens of it.
absl::Status ReadSpans(const v1::SequenceInfo& info, SequenceInfo& sequence);

// INTERNAL when the starts and ends are not equally many.
absl::Status ReadOffsets(const v1::TokenOffsets& offsets, SequenceInfo& sequence);

// Rows of `pooled` that the sequences have.
int64_t CountEmbeddings(const EncodeResult& result);

}  // namespace attendant::client
