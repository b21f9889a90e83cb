// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/attention/attention_args.h"
#include "kernels/cpu/simd/paired_panel.h"

namespace attendant::cpu {

// Values whose range, or largest magnitude, is no more are zeros in 8 bits: what 1/255 and 1/127 of
// it is, and the inverse of that, must be normal numbers of f32.
inline constexpr float kLeastInt8Range = 2.998e-36f;

// The real numbers that a row of 8-bit activations stands for: (value - zero_point) * scale.
struct RowQuantization {
  float scale = 0;
  int32_t zero_point = 0;
};

// A row in the number format that the next matmul reads: f32, bf16, or u8 with its quantization,
// which may stand for the row times `smoothing` (the matmul's weights are divided by them).
struct OperandRow {
  void* values = nullptr;                   // [columns]
  RowQuantization* quantization = nullptr;  // u8 only, like the next
  const float* smoothing = nullptr;         // [columns], or null: 1
};

// A row of a matmul: f32, or, of 8-bit operands, s32 sums which stand for
// (sum * column_scales[j] - zero_point * column_offsets[j]) * scale.
struct MatmulRow {
  const void* values = nullptr;  // [columns]
  // Of the operand's row; s32 only, like the next two.
  const RowQuantization* quantization = nullptr;
  const float* column_scales = nullptr;   // [columns], of the 8-bit weights
  const float* column_offsets = nullptr;  // [columns], the scale times the sum of the column
};

// One row's layer normalization: y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, or with
// 0 as its mean.
struct LayerNormArgs {
  const float* gamma = nullptr;  // [hidden]
  const float* beta = nullptr;   // [hidden]
  int64_t hidden = 0;
  float epsilon = 0;
  float* y = nullptr;  // [hidden]; null: in place of x
  bool rms = false;    // the mean is 0
};

// A kernel for each activation (ActivationKernel finds it); null: there is none.
template <typename Kernel>
struct ActivationKernels {
  Kernel gelu_erf = nullptr, gelu_tanh = nullptr, relu = nullptr, silu = nullptr;
};

// Terms that the columns and rows of a matmul have beside its operands.
struct MatmulTerms {
  const float* bias = nullptr;  // [columns], or null: 0
  // Dequantization of the sums of 8-bit operands, as in MatmulRow, for all rows.
  const RowQuantization* quantization = nullptr;  // [rows]
  const float* column_scales = nullptr;           // [columns], like the next
  const float* column_offsets = nullptr;
};

// y [rows, columns] = x [rows, k] weight [k, columns] [+ bias], for a weight packed in panels of
// MatmulKernels::panel_columns columns, one after the other; the last one is filled up with zeros:
//   panel [groups, panel_columns] groups, one group being as many values along k as 4 bytes hold
// or for MatmulKernels::paired in PairedPanels.
// Kernels with step_groups above 1 read whatever lies in x up to the next multiple of 16 rows, and
// MatmulKernels::multiply writes as many of y; the others write `rows`.
struct MatmulArgs {
  const void* x = nullptr;  // [rows, k]
  int64_t x_bytes = 0;      // of a row
  const void* weight = nullptr;
  int64_t groups = 0;  // k in groups, as the panels have it; PairedPanels hold whole blocks of them
  MatmulTerms terms;
  void* y = nullptr;    // [rows, columns], where they are gated [rows, columns / 2]
  int64_t y_bytes = 0;  // from one row to the next
  int64_t rows = 0;
  int64_t columns = 0;
};

// Matmuls of one number format: x f32, bf16 or u8, weights f32, bf16 or s8. Null: there is none.
struct MatmulKernels {
  using Multiply = void (*)(const MatmulArgs& args);

  int64_t panel_columns = 0;  // of the weight that lie side by side in a panel
  int64_t group_values = 0;   // along k in 4 bytes: 1 of f32, 2 of bf16, 4 of 8 bits
  // Panels are filled up with zeros to a multiple of so many groups. 1: k must be a multiple of
  // group_values.
  int64_t step_groups = 1;
  bool paired = false;          // weights are PairedPanels (paired_panel.h)
  Multiply multiply = nullptr;  // y f32; of 8-bit operands s32, without terms

  // The kernels below use terms.bias, with 8-bit operands all terms, and write real numbers.
  Multiply multiply_to_bf16 = nullptr;  // y in bf16
  Multiply multiply_add = nullptr;      // y f32 += x weight + bias
  // y = activation(x weight + bias), in bf16 of a bf16 matmul, else in f32.
  ActivationKernels<Multiply> activate;
  // y [rows, columns / 2] = activation(gate) * up, likewise. A panel's first half are columns of
  // the gate, its second half the same ones of up; all panels are full.
  ActivationKernels<Multiply> activate_gated;
};

// Dot products of rows with vectors that are packed once.
inline constexpr int64_t kDotGranularity = 32;
struct DotArgs {
  const void* x = nullptr;  // [rows, width], f32 or bf16 as the vectors
  int64_t x_stride = 0;     // values from one row to the next, as y_stride
  int64_t rows = 0;
  const void* packed = nullptr;  // vectors [count, width], by DotKernels::pack
  int64_t count = 0;
  int64_t width = 0;
  int64_t begin = 0, end = 0;  // the vectors that are multiplied
  // [rows, y_stride], value i of a row is of vector i. Values before `begin` and from `end` on may
  // change too; rows and `count` are rounded up to kDotGranularity.
  float* y = nullptr;
  int64_t y_stride = 0;
  void* scratch = nullptr;  // DotKernels::scratch_bytes
};

// Dot products in one number format. The bits of a row's products do not depend on the other rows
// and vectors.
struct DotKernels {
  int64_t (*packed_bytes)(int64_t count, int64_t width);
  void (*pack)(const void* vectors, int64_t count, int64_t width, void* packed);
  int64_t (*scratch_bytes)(int64_t width);
  void (*multiply)(const DotArgs& args);
};

// weights [queries, keys], row stride `weights_stride`, of the queries that `args` says; values and
// output are not used, and `args.scratch` has attention_weights_scratch_bytes(keys, head_dim)
// bytes.
using AttentionWeightsFunction = void (*)(const AttentionArgs& args, float* weights,
                                          int64_t weights_stride);

// The work on rows between the matmuls of one number format.
struct RowKernels {
  // operand = x, converted.
  void (*convert)(const float* x, int64_t columns, const OperandRow& operand);

  // norm.y = LayerNorm(states), and the same as operand, unless its values are null. In f32 norm.y
  // is the operand and `operand` is ignored.
  void (*layer_norm)(float* states, const LayerNormArgs& norm, const OperandRow& operand);

  // states += matmul + bias, and then the same; without gamma no norm and no operand. The operand's
  // quantization may be the matmul's: it is read before it is written.
  void (*add_layer_norm)(float* states, const MatmulRow& matmul, const float* bias,
                         const LayerNormArgs& norm, const OperandRow& operand);

  // operand = activation(matmul + bias), without smoothing. `scratch` [columns] is used by u8.
  // In f32 the operand may be the matmul.
  using Activate = void (*)(const MatmulRow& matmul, const float* bias, int64_t columns,
                            float* scratch, const OperandRow& operand);
  ActivationKernels<Activate> activate;

  // operand = activation(gate) * up: the matmul and the bias [2 * columns] are gate and up, side by
  // side.
  ActivationKernels<Activate> activate_gated;

  // qkv = matmul + bias
  void (*add_bias)(const MatmulRow& matmul, const float* bias, int64_t columns, void* qkv);

  // Normalizes each of the heads [heads, norm.hidden] in place, in qkv's format; norm.y is not
  // used.
  void (*normalize_heads)(void* qk, int64_t heads, const LayerNormArgs& norm);

  // Turns values i and i + head_dim / 2 of every head, in place, by the angle whose cosine and sine
  // stand at i of `cosines` and `sines` [head_dim / 2]. The heads [heads, head_dim] are in qkv's
  // format.
  void (*rotate)(void* qk, int64_t heads, int64_t head_dim, const float* cosines,
                 const float* sines);

  // Attention over queries, keys and values in the layout and format of qkv.
  void (*attention)(const AttentionArgs& args);
  AttentionWeightsFunction attention_weights;
  DotKernels dots;   // of queries or keys
  bool qkv_is_bf16;  // else f32
};

// The hand-written kernels, compiled once for each instruction set from vector_kernels.inc.
// All are pure functions of their arguments: a row's result does not depend on the rows beside it.
struct VectorKernels {
  const char* isa;  // as CpuIsaName has it

  // states = LayerNorm(token + segment + position), all [hidden]; without gamma their sum.
  void (*embed)(const float* token, const float* segment, const float* position,
                const LayerNormArgs& norm, float* states);

  // AttentionArgs::scratch, and attention of operands in f32 and in bf16.
  int64_t (*attention_scratch_bytes)(int64_t keys, int64_t head_dim, int64_t value_dim);
  void (*attention_f32)(const AttentionArgs& args);
  void (*attention_bf16)(const AttentionArgs& args);

  int64_t (*attention_weights_scratch_bytes)(int64_t keys, int64_t head_dim);
  AttentionWeightsFunction attention_weights_f32, attention_weights_bf16;

  RowKernels f32, bf16, int8;
  MatmulKernels f32_matmul, bf16_matmul, int8_matmul;
};

extern const VectorKernels kAvx2Kernels;
extern const VectorKernels kAvx2VnniKernels;
extern const VectorKernels kAvx512Kernels;
extern const VectorKernels kAvx512VnniKernels;
extern const VectorKernels kAvx512Bf16Kernels;
extern const VectorKernels kAmxKernels;

}  // namespace attendant::cpu
