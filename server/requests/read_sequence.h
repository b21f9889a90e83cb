// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/models/encoder_model.h"
#include "server/models/sentence/prompts.h"
#include "server/requests/encode_types.h"

namespace attendant {

// The settings with which the sequences of a request are tokenized.
struct SequenceReading {
  const EncoderModel& model;
  const EncodeInput& input;
  // Goes before each text that is no pair, and into pairs with a form.
  const Prompt* prompt = nullptr;
};

// The end of a text that is cut.
TruncationSide SideOf(const SequenceReading& reading);

// "sequence 3: " before the message: the number by which the client knows sequence `index`.
absl::Status InSequence(const EncodeInput& input, size_t index, const absl::Status& status);

// The tokens of a request's sequence `index`; its results are empty. Ids take no prompt, nor does a
// pair of texts without a form (pair_form.h): where the request names one, they are refused. A
// model whose pairs have a form takes no single text. INVALID_ARGUMENT names the sequence, the
// field, its value and the limit.
absl::StatusOr<EncodedSequence> ReadSequence(const SequenceReading& reading, size_t index,
                                             const SequenceContent& content);

}  // namespace attendant
