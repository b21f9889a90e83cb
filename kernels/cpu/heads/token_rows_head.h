// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cpu/heads/row_linear.h"
#include "kernels/heads/head.h"
#include "kernels/heads/token_head.h"

namespace attendant::cpu {

// The three heads that make a short row of every token. Errors of all are CreateMatmul's; `head` is
// of the kind that the name says.

// kTokenScores: the labels' logits, or their softmax.
absl::StatusOr<std::unique_ptr<Head>> MakeTokenLabelsHead(const HeadCompute& compute,
                                                          const TokenHead& head);

// kSparse: relu(out(state)), for each id the largest of its tokens.
absl::StatusOr<std::unique_ptr<Head>> MakeTokenWeightsHead(const HeadCompute& compute,
                                                           const TokenHead& head);

// kMultiVector: out(state), divided by its L2 norm. Documents have none for ignored ids.
absl::StatusOr<std::unique_ptr<Head>> MakeVectorsHead(const HeadCompute& compute,
                                                      const TokenHead& head);

}  // namespace attendant::cpu
