// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/backend.h"
#include "kernels/heads/head.h"
#include "kernels/heads/token_head.h"

namespace attendant {

// `head` with packed weights, for states of `encoder`, which it does not keep. Heads compute on the
// CPU whatever the back end: in bf16 where the encoder computes in less than f32 and the processor
// is fast at it, else in f32. RESOURCE_EXHAUSTED when the weights do not fit in memory; INTERNAL
// when a library fails.
absl::StatusOr<std::unique_ptr<Head>> MakeHead(const TokenHead& head,
                                               const PreparedEncoder& encoder);

}  // namespace attendant
