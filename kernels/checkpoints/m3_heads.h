// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/heads/token_head.h"

namespace attendant {

// Adds the two heads of BGE-M3 that `directory` has beside its encoder: sparse_linear.safetensors
// with `weight` [1, hidden] and `bias` [1], and colbert_linear.safetensors with `weight` [dims,
// hidden] and `bias` [dims]. A head that is there as a pickle alone, sparse_linear.pt, goes to
// `unread`, with the command that converts it. INVALID_ARGUMENT, naming the file, the tensor and
// both shapes, for one that does not fit.
absl::Status ReadM3Heads(const std::string& directory, int64_t hidden,
                         std::vector<TokenHead>& heads, std::vector<UnreadHead>& unread);

}  // namespace attendant
