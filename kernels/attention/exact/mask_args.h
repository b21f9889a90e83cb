// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/cpu/simd/attention/attention_args.h"

namespace attendant::attention {

// Floats that ApplyMask may write for a call's longest sequence and pieces of up to `queries`.
// REQUIRES: CheckCall accepted the call.
int64_t MaskBufferFloats(const Call& call, int64_t queries);

// Adds to cost.operations what ApplyMask and the kernel's reading of a mask take, with `seen` pairs
// of queries and keys in each head. REQUIRES: as above.
void AddMaskOperations(const Call& call, int64_t seen, Cost& cost);

// Says the call's mask, for one sequence and head and the queries of `args`, in the kernel's terms:
// bias, allowed and window. Reads the caller's mask where it lies; only what has no such form is
// written out, into `buffer`. With `trim`, keys that no query may attend to are cut off at the end
// (and, where positions do not matter, at the beginning) of the keys and values: padding costs
// nothing then. REQUIRES: `args` has operands, keys and queries.
void ApplyMask(const Call& call, int64_t sequence, int64_t head, bool trim, float* buffer,
               cpu::AttentionArgs& args);

}  // namespace attendant::attention
