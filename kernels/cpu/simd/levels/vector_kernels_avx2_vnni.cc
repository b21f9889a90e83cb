// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/levels/simd_avx2_vnni.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {
namespace avx2 {
namespace {
#include "kernels/cpu/simd/vector_kernels.inc"
}  // namespace
}  // namespace avx2

const VectorKernels kAvx2VnniKernels = avx2::MakeVectorKernels("avx2_vnni");

}  // namespace attendant::cpu
