// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/core/packed_batch.h"

namespace attendant {

// The factors of a batch's token embeddings [tokens], beside embedding_scale: 0 for the dropped
// token; len / (tokens that are not dropped) for the others of its sequence, which is 1 where none
// is dropped. Of the tokens in the batch: transformers also counts dropped ones that an attention
// mask leaves out of it.
void WriteTokenScales(const PackedBatch& batch, int64_t dropped_token, float* scales);

}  // namespace attendant
