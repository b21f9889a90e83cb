// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/scored/scored_kernels.h"
#include "kernels/cpu/simd/levels/simd_avx2_formats.h"

namespace attendant::attention {
namespace avx2 {
namespace {

using namespace attendant::cpu::avx2;  // NOLINT: the operations, in this file alone

// Rows of scores that a tile of tanh sums holds beside its operands in 16 registers.
constexpr int kScoreRows = 2;

ATTENDANT_INLINE F32 Reciprocal(F32 x) { return Div(Set(1.0f), x); }

ATTENDANT_INLINE Mask Equal(F32 a, F32 b) {
  return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}

ATTENDANT_INLINE F32 LoadBf16(const uint16_t* p, Mask mask) {
  alignas(16) uint16_t lanes[kLanes] = {};
  const int64_t count = CountLanes(mask);
  if (count == kLanes) {
    __builtin_memcpy(lanes, p, sizeof(lanes));
  } else {
    for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
  }
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_load_si128(reinterpret_cast<__m128i*>(lanes)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

#include "kernels/attention/scored/scored_kernels.inc"

}  // namespace
}  // namespace avx2

const ScoredKernels kAvx2ScoredKernels = avx2::MakeScoredKernels("avx2");

}  // namespace attendant::attention
