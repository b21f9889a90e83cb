// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/requests/encode_types.h"
#include "server/requests/read_sequence.h"

// Queries of inference-free sparse models: their sparse vectors are looked up (sparse_lookup.h),
// and the encoder does not run.
namespace attendant {

// True if the sparse vectors of the request's single texts, not pairs, are looked up.
bool LooksUp(const SequenceReading& reading);

// INVALID_ARGUMENT for a request that asks for another output than `sparse` of such texts.
absl::Status CheckLookup(const SequenceReading& reading);

// The tokens of sequence `index`, without special tokens, and its sparse vector (looked_up), of
// `top_k` weights at most (TaskOptions). Errors are the tokenizer's, with the sequence. REQUIRES:
// LooksUp, and CheckLookup returned OK.
absl::StatusOr<EncodedSequence> LookUp(const SequenceReading& reading, size_t index,
                                       const std::string& text, int64_t top_k);

// The bytes of its sparse vector in the answer. REQUIRES: it was looked up.
int64_t CountLookupBytes(const EncodeOutput& output, const EncodedSequence& sequence);

// Makes the vector that was looked up the sequence's result. False: it was not.
bool TakeLookup(EncodedSequence& sequence);

}  // namespace attendant
