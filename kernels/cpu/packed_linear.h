// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include "kernels/core/arena.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/vector_kernels.h"

namespace attendant::cpu {

// The weights of one or several linear maps of the same input, side by side, in the form of a
// Matmul. int8 weights are symmetric with one scale for each output column: w = value *
// column_scales[j], value in [-127, 127].
struct PackedLinear {
  dnnl::memory weight;               // [inputs, outputs], packed
  std::vector<float> bias;           // [outputs]
  std::vector<int32_t> column_sums;  // [outputs], of the 8-bit values; int8 only
  std::vector<float> column_scales;  // [outputs]; int8 only

  int64_t bytes() const;
};

// The packed weight lies in `storage`, matmul.packed_bytes() bytes that must outlive the result.
// Threads may pack into storage of their own at once.
PackedLinear PackLinear(const Matmul& matmul, std::span<const LinearWeights* const> parts,
                        std::byte* storage);
// The same in memory of `arena`.
PackedLinear PackLinear(const Matmul& matmul, std::initializer_list<const LinearWeights*> parts,
                        Arena& arena);

}  // namespace attendant::cpu
