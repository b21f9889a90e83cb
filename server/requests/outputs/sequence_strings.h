// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "server/models/encoder_model.h"
#include "server/requests/encode_types.h"

// The strings of the tokens of sequences. They are counted when a request is checked, and made when
// its answer's memory is acquired.
namespace attendant {

// The bytes of the strings of a sequence; 0: not asked for.
int64_t CountStringBytes(const EncoderModel& model, const EncodeOutput& output,
                         const EncodedSequence& sequence);

// Fills in the token_strings of all sequences, where they are asked for.
void FillStrings(const EncoderModel& model, EncodeOutput& output);

}  // namespace attendant
