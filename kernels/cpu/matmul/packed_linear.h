// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "kernels/core/arena.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/cpu/matmul/matmul.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

// A weight so large that it would take the 8 bits of its output for itself. It stays f32, outside
// the 8-bit matmul: outlier decomposition, as LLM.int8() has it (Dettmers et al. 2022).
struct OutlierWeight {
  int64_t input = 0;
  int64_t output = 0;
  float value = 0;
};

// The weights of one or several linear maps of the same input, side by side, or a gate and up by
// turns, in the form of a Matmul, whose order all that has [outputs] values follows. int8 weights
// are symmetric with one scale for each output column: w = value * column_scales[j], value in
// [-127, 127].
struct PackedLinear {
  const std::byte* weight = nullptr;  // [inputs, outputs], packed by the Matmul
  int64_t weight_bytes = 0;
  std::vector<float> bias;  // [outputs], zeros where a part has none

  // int8 only.
  std::vector<float> column_scales;      // [outputs]
  std::vector<float> column_offsets;     // [outputs], scale * sum of the 8-bit values
  std::vector<float> smoothing_factors;  // [inputs], or empty: of the operand, before it is 8 bits
  std::vector<OutlierWeight> outliers;   // at most kMaxOutliers; 0 in `weight`

  int64_t bytes() const;
};

// For int8; without meaning elsewhere.
struct QuantizationOptions {
  std::vector<float> smoothing_factors{};  // the weights are divided by them; empty: 1
  bool decompose_outliers = false;
};

// Of one linear map at most: each costs a multiplication for every token.
inline constexpr size_t kMaxOutliers = 16;

// Of MatmulOutput::kGated the parts are the gate and up, each of n / 2 outputs. The packed weight
// lies in `storage`, matmul.packed_bytes() bytes that must outlive the result.
// Threads may pack into storage of their own at once.
PackedLinear PackLinear(const Matmul& matmul, std::initializer_list<const LinearWeights*> parts,
                        std::byte* storage, const QuantizationOptions& quantization = {});
// The same in memory of `arena`.
PackedLinear PackLinear(const Matmul& matmul, std::initializer_list<const LinearWeights*> parts,
                        Arena& arena, const QuantizationOptions& quantization = {});
// One map without a bias, whose weight is stored as [inputs, outputs].
PackedLinear PackTransposed(const Matmul& matmul, TensorView<const float, 2> weight,
                            std::byte* storage, const QuantizationOptions& quantization = {});

}  // namespace attendant::cpu
