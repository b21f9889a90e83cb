// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/levels/simd_avx512_bytes.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {
namespace avx512 {
namespace {
#include "kernels/cpu/simd/vector_kernels.inc"
}  // namespace
}  // namespace avx512

const VectorKernels kAvx512Kernels = avx512::MakeVectorKernels("avx512");

}  // namespace attendant::cpu
