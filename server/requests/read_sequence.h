// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/models/encoder_model.h"
#include "server/models/sentence/prompts.h"
#include "server/requests/encode_types.h"

namespace attendant {

// How the sequences of a request become tokens.
struct SequenceReading {
  const EncoderModel& model;
  const EncodeInput& input;
  const Prompt* prompt = nullptr;  // goes before each text that is no pair
};

// The end of a text that is cut.
TruncationSide SideOf(const SequenceReading& reading);

// "sequence 3: " before the message: the number by which the client knows sequence `index`.
absl::Status InSequence(const EncodeInput& input, size_t index, const absl::Status& status);

// The tokens of a request's sequence `index`; its results are empty. A pair of texts and ids take
// no prompt: where the request names one, they are refused. INVALID_ARGUMENT names the sequence,
// the field, its value and the limit.
absl::StatusOr<EncodedSequence> ReadSequence(const SequenceReading& reading, size_t index,
                                             const SequenceContent& content);

}  // namespace attendant
