// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd.h"
#include "kernels/cpu/vector_kernels.h"

namespace attendant::cpu {
namespace avx512 {
namespace {
#include "kernels/cpu/vector_kernels.inc"
}  // namespace
}  // namespace avx512

const VectorKernels kAvx512Kernels = {
    .isa = "avx512",
    .add_layer_norm = avx512::AddLayerNorm,
    .bias_gelu_erf = avx512::BiasGeluErf,
    .bias_gelu_tanh = avx512::BiasGeluTanh,
    .bias_relu = avx512::BiasRelu,
    .attention = avx512::Attention,
    .attention_scratch = avx512::AttentionScratch,
};

}  // namespace attendant::cpu
