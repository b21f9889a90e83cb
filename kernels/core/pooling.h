// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/outputs.h"
#include "kernels/core/shape.h"

namespace attendant {

// Pools one sequence: states [len, hidden] -> pooled [dims of `spec`, or hidden].
// Sums run over the tokens in order, so the result depends on the sequence alone.
// REQUIRES: len > 0, spec.pooling != kNone, spec.dims <= hidden.
void PoolSequence(TensorView<const float, 2> states, const SequenceOutputs& spec, float* pooled);

}  // namespace attendant
