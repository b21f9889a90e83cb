// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd.h"
#include "kernels/cpu/vector_kernels.h"

namespace attendant::cpu {
namespace avx2 {
namespace {
#include "kernels/cpu/vector_kernels.inc"
}  // namespace
}  // namespace avx2

const VectorKernels kAvx2Kernels = {
    .isa = "avx2",
    .add_layer_norm = avx2::AddLayerNorm,
    .bias_gelu_erf = avx2::BiasGeluErf,
    .bias_gelu_tanh = avx2::BiasGeluTanh,
    .bias_relu = avx2::BiasRelu,
    .attention = avx2::Attention,
    .attention_scratch = avx2::AttentionScratch,
};

}  // namespace attendant::cpu
