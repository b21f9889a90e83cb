// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/heads/token_head.h"
#include "kernels/io/json_folder.h"

namespace attendant {

class TensorStore;

// Adds the head of a ColBERT model: the Dense modules behind the Transformer of modules.json, as
// PyLate and sentence-transformers save them, made one layer; or, where the first of config.json's
// `architectures` is HF_ColBERT, the tensor `linear.weight` [dims, hidden] beside those of the
// encoder. INVALID_ARGUMENT, naming file, field or tensor, for what is missing or contradictory;
// UNIMPLEMENTED for a Dense with an activation, and for vectors that no Normalize makes of
// length 1. Weights point into `store`, which `weights.storage` keeps alive, or into memory of the
// head's own.
absl::Status ReadColbertHead(const JsonNode& config, const JsonFolder& folder, int64_t hidden,
                             const EncoderWeights& weights, TensorStore& store,
                             std::vector<TokenHead>& heads);

// True if the chain of modules.json is of a ColBERT model: a Transformer, then one Dense or
// several. PyLate saves nothing after them; sentence-transformers' MultiVectorEncoder saves
// MultiVectorMask and Normalize in any order.
absl::StatusOr<bool> IsColbertChain(const JsonNode& modules);

// The folder of the MultiVectorMask in modules.json; unset: there is none. INVALID_ARGUMENT for a
// file that is not valid.
absl::StatusOr<std::optional<JsonFolder>> FindMaskModule(const JsonFolder& folder);

}  // namespace attendant
