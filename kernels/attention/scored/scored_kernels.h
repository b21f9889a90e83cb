// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant::attention {

struct Call;

// A matmul sums up so many terms, beginning at 0, before it adds them to c: rows of b, one tile
// wide, stay in the second-level cache meanwhile.
inline constexpr int64_t kMatmulBlock = 512;

// c [m, n] = a [m, k] b [k, n], or that added to c. Values of b and c lie side by side in their
// rows; a's strides are free, so that a transposed matrix is read where it lies.
struct StridedMatmulArgs {
  const float* a = nullptr;
  int64_t a_row_stride = 0;
  int64_t a_column_stride = 1;
  const float* b = nullptr;
  int64_t b_row_stride = 0;
  float* c = nullptr;
  int64_t c_row_stride = 0;
  int64_t m = 0, n = 0, k = 0;
  bool accumulate = false;
};

// scores[i, j] = sum over u of score_weight[u] * tanh(queries[u, i] + keys[u, j]), for `rows`
// queries and `columns` keys, rounded up to whole vectors. Where flags[j] is not 0 the keys are
// exponentials: see key_exponentials.
struct TanhScoreArgs {
  const float* queries = nullptr;       // [units, query_stride]
  const float* exponentials = nullptr;  // the same, after double_exponential
  const float* keys = nullptr;          // [units, key_stride]
  const float* flags = nullptr;         // [columns]
  const float* score_weight = nullptr;  // [units]
  float* scores = nullptr;              // [rows, score_stride]
  int64_t query_stride = 0, key_stride = 0, score_stride = 0;
  int64_t units = 0, rows = 0, columns = 0;
};

// The hand-written kernels of the kinds that have no dot product with every key, compiled once for
// each instruction set from scored_kernels.inc. Pure functions; a row's result does not depend on
// the rows beside it. Operands named `values` are f32, or bf16 where `bf16` says so.
struct ScoredKernels {
  const char* isa;    // "avx2" or "avx512"
  int64_t lanes;      // floats of a vector
  int64_t tile_rows;  // rows of c that a matmul computes at once

  void (*matmul)(const StridedMatmulArgs& args);

  // row = values, and back with values = row * factor. [n] each.
  void (*load_row)(const void* values, bool bf16, int64_t n, float* row);
  void (*store_row)(const float* row, float factor, int64_t n, bool bf16, void* values);

  // out[j, i] = rows[i, j]: [count, n], rows `stride` apart -> [n, out_stride], zeros in columns
  // from `count` to the next whole vector.
  void (*transpose)(const float* rows, int64_t stride, int64_t count, int64_t n, float* out,
                    int64_t out_stride);

  // For a tanh of sums: row = e^(2 row), [n]; and the same of the columns of keys [units, stride]
  // that have no magnitude above 21.5, whose flags become 1, the others' 0. True when all did.
  // `columns` is rounded up to whole vectors. NaN stays NaN and has no magnitude.
  void (*double_exponential)(float* row, int64_t n);
  bool (*key_exponentials)(float* keys, int64_t stride, int64_t units, int64_t columns,
                           float* flags);
  // For flags that are all 1, and for any.
  void (*tanh_scores_of_exponentials)(const TanhScoreArgs& args);
  void (*tanh_scores)(const TanhScoreArgs& args);

  // scores = e^(scores + bias - their maximum); returns the sum. `bias` may be null; where it is
  // -inf the score does not matter. With no sum above -inf all become 0. [n]
  float (*exponentials)(float* scores, const float* bias, int64_t n);

  // row = feature map of row. [n]
  void (*elu_plus_one)(float* row, int64_t n);
  void (*relu)(float* row, int64_t n);

  float (*dot)(const float* a, const float* b, int64_t n);
  float (*sum)(const float* row, int64_t n);
  // sum += row * factor, [n]
  void (*add_scaled)(const float* row, float factor, int64_t n, float* sum);
  // True if every value is finite. [n]
  bool (*finite)(const float* row, int64_t n);
};

extern const ScoredKernels kAvx2ScoredKernels;
extern const ScoredKernels kAvx512ScoredKernels;

// The kernels for the call's instruction set. REQUIRES: call.isa.
const ScoredKernels& ScoredKernelsOf(const Call& call);

}  // namespace attendant::attention
