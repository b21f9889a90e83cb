// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernels/core/encoder_config.h"
#include "server/requests/encode_run.h"
#include "server/requests/number_format.h"

namespace attendant {

// The layers and heads that a request asks to look into, "all" spelt out. INVALID_ARGUMENT names a
// number that the model does not have, or that is there twice.
absl::StatusOr<LayerSelection> ChooseLayers(const EncoderConfig& config, const EncodeInput& input);

// Appends a sequence's attention weights as [maps, len, len], with zeros in the rows and columns of
// masked tokens; the result holds those of the others, [maps, unmasked, unmasked].
void AppendAttentionWeights(const EncodedSequence& sequence, int64_t maps, NumberFormat format,
                            std::string& bytes);

// Appends rows of a sequence's hidden states as [len, hidden], zeros where the mask is 0. `values`
// [unmasked, hidden] are those of the others.
void AppendHiddenState(const EncodedSequence& sequence, int64_t hidden, const float* values,
                       NumberFormat format, std::string& bytes);

}  // namespace attendant
