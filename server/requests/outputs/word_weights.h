// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "server/models/encoder_model.h"
#include "server/requests/encode_types.h"

// Weights of words by attention, as BM42 has them: how much the first token of a sequence attends
// to a word in the last layer.
namespace attendant {

// Has the back end give what words are weighed by, if `input` asks for word weights: the first row
// of each head's attention in the last layer. INVALID_ARGUMENT when attention weights are asked for
// too, or the model's tokenizer does not tell which tokens continue a word. REQUIRES: output.layers
// is chosen.
absl::Status ChooseWordWeights(const EncoderModel& model, const EncodeInput& input,
                               EncodeOutput& output);

// The bytes of the words of a sequence and of their weights, at most; 0: not asked for.
int64_t CountWordBytes(const EncoderModel& model, const EncodeOutput& output,
                       const EncodedSequence& sequence);

// Fills `words` and `word_weights`, and frees the result's attention weights, from which it makes
// them: the mean over the heads, summed over the tokens of a word. Special tokens and masked ones
// have no part.
void WeighWords(const EncoderModel& model, EncodedSequence& sequence);

}  // namespace attendant
