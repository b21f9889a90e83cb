// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant::cpu {

// One row's layer normalization: y = (x - mean) / sqrt(variance + epsilon) * gamma + beta.
struct LayerNormArgs {
  const float* gamma = nullptr;  // [hidden]
  const float* beta = nullptr;   // [hidden]
  int64_t hidden = 0;
  float epsilon = 0;
};

// Part of one head's self-attention: out = softmax(q k^T * scale) v for the query rows
// [query_begin, query_end) of a sequence, over all its `len` keys. Row i of q, k and v is `stride`
// floats after row i - 1, as they lie in the fused [tokens, 3 * hidden] projection.
struct AttentionArgs {
  const float* q = nullptr;  // [len, head_dim], row stride `stride`
  const float* k = nullptr;  // the same
  const float* v = nullptr;  // the same
  float* out = nullptr;  // [len, head_dim], row stride `out_stride`; row 0 is the sequence's first
  int64_t stride = 0;
  int64_t out_stride = 0;
  int64_t len = 0;
  int64_t head_dim = 0;
  int64_t query_begin = 0;
  int64_t query_end = 0;
  float scale = 0;
  float* scratch = nullptr;  // attention_scratch(len, head_dim) floats, 64-byte aligned
};

// The hand-written kernels, compiled once for each instruction set from vector_kernels.inc.
// All are pure functions of their arguments: a row's result does not depend on the rows beside it.
struct VectorKernels {
  const char* isa;  // "avx512" or "avx2"

  // out = LayerNorm(a + b + c); `c` is a bias or a third row, all [hidden]. `out` may be `a` or
  // `b`.
  void (*add_layer_norm)(const float* a, const float* b, const float* c, const LayerNormArgs& norm,
                         float* out);

  // x = activation(x + bias), one row of `columns`.
  void (*bias_gelu_erf)(float* x, const float* bias, int64_t columns);
  void (*bias_gelu_tanh)(float* x, const float* bias, int64_t columns);
  void (*bias_relu)(float* x, const float* bias, int64_t columns);

  void (*attention)(const AttentionArgs& args);
  int64_t (*attention_scratch)(int64_t len, int64_t head_dim);
};

extern const VectorKernels kAvx2Kernels;
extern const VectorKernels kAvx512Kernels;

}  // namespace attendant::cpu
