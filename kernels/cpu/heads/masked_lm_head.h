// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cpu/heads/row_linear.h"
#include "kernels/heads/head.h"
#include "kernels/heads/token_head.h"

namespace attendant::cpu {

// kFillMask and kSparse from the logits of a masked language model. Logits are made for a slice of
// the vocabulary and kHeadRows tokens at a time, and reduced at once: what stays is a row [vocab]
// for a sequence or a mask token, of some of them at a time. Errors are CreateMatmul's.
// REQUIRES: head.kind == kMaskedLm.
absl::StatusOr<std::unique_ptr<Head>> MakeMaskedLmHead(const HeadCompute& compute,
                                                       const TokenHead& head);

}  // namespace attendant::cpu
