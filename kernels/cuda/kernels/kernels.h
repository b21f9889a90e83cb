// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/kernels/batch_counts.h"
#include "kernels/cuda/runtime/number_types.h"

// Everything that is computed on the device besides the matmuls and attention
// (attention_kernels.h), as functions that put one kernel into `stream`. Every pointer is to device
// memory, aligned to 16 bytes; `hidden` is a multiple of 8 up to 8192, `width` any multiple of 8.
//
// A row's bits depend on that row alone (attention: on its sequence), never on the counts.
// Errors are those of the launch (cudaGetLastError); no call waits.
namespace attendant::cuda {

// Format is of the states: kF32, kBf16 or kF16; kFp8 means kBf16. Tables, gamma and beta are f32
// for kF32, else the tables are in the states' format and gamma and beta f32. Sums and statistics
// are f32. A norm is LayerNorm, or with `rms` x / sqrt(mean of squares + epsilon) * gamma + beta.

struct NormWeights {
  const float* gamma;  // [hidden]
  const float* beta;   // [hidden]
};

struct EmbedArgs {
  const int32_t* token_ids;        // [max_tokens]
  const int32_t* positions;        // [max_tokens]
  const int32_t* segment_ids;      // [max_tokens]
  const void* token_embedding;     // [vocab, hidden]
  const void* position_embedding;  // [max_positions, hidden], or null
  const void* segment_embedding;   // [segment_types, hidden]
  NormWeights norm;                // null: none
  float epsilon;
  void* states;  // [max_tokens, hidden]
  // fp8 only, else null: the states once more as the next matmul's operand.
  uint8_t* quantized;  // [max_tokens, hidden] e4m3
  float* scales;       // [max_tokens]
  bool rms = false;
  float token_scale = 1;
  const float* token_scales = nullptr;  // [max_tokens], a factor of each token; null: 1
  // For encoders with norms before branches: the sum of all branches is written here, and its norm
  // `next` to states.
  float* residual = nullptr;  // [max_tokens, hidden]
  NormWeights next{};         // null: none
};
// states = norm(token * token_scale * token_scales + position + segment)
cudaError_t LaunchEmbed(DType dtype, const EmbedArgs& args, const BatchCounts* counts,
                        int64_t max_tokens, int64_t hidden, cudaStream_t stream);

struct ResidualNormArgs {
  const void* update;  // [max_tokens, hidden]: a matmul with its bias
  NormWeights norm;
  float epsilon;
  void* states;        // [max_tokens, hidden]
  uint8_t* quantized;  // [max_tokens, hidden] e4m3, as in EmbedArgs
  float* scales;       // [max_tokens]
  bool rms = false;
};
// states = norm(states + update)
cudaError_t LaunchResidualNorm(DType dtype, const ResidualNormArgs& args, const BatchCounts* counts,
                               int64_t max_tokens, int64_t hidden, cudaStream_t stream);

// states = norm(states + branch_norm(states + update))
cudaError_t LaunchSecondNorm(DType dtype, const ResidualNormArgs& args,
                             const NormWeights& branch_norm, const BatchCounts* counts,
                             int64_t max_tokens, int64_t hidden, cudaStream_t stream);

struct BranchNormArgs {
  const void* update;  // [max_tokens, hidden], as above
  NormWeights norm;    // null: none
  float* residual;     // [max_tokens, hidden]; null: zeros, not kept
  NormWeights next;    // null: none
  float epsilon;
  bool rms;
  void* states;        // [max_tokens, hidden]
  uint8_t* quantized;  // as in EmbedArgs
  float* scales;
};
// residual += norm(update); states = next(residual). The residual is f32 in all formats: it is the
// sum of all branches, so that its roundings would add up, and it outgrows f16.
cudaError_t LaunchBranchNorm(DType dtype, const BranchNormArgs& args, const BatchCounts* counts,
                             int64_t max_tokens, int64_t hidden, cudaStream_t stream);

struct WholeNormArgs {
  // Queries [query_width] and then keys [key_width], rows `stride` apart, in place. Widths are
  // multiples of 8 up to 8192, that of queries the larger one.
  void* qkv;
  int64_t stride;
  int64_t query_width, key_width;
  NormWeights query_norm, key_norm;
  float epsilon;
  bool rms;
};
// Queries are normalized, all heads together, and so are keys.
cudaError_t LaunchWholeNorm(DType dtype, const WholeNormArgs& args, const BatchCounts* counts,
                            int64_t max_tokens, cudaStream_t stream);

struct PlaceHeadsArgs {
  // Queries [heads, head_dim] and then keys [key_heads, head_dim], rows `stride` apart, in place.
  void* qkv;
  int64_t stride;
  int32_t heads, key_heads, head_dim;  // head_dim a multiple of 4 up to 256
  const float* query_norm;             // [head_dim], the gamma of an RMS norm; null: none
  const float* key_norm;               // likewise
  float epsilon;
  const float* rotary;       // [max_positions, head_dim], cosines and then sines; null: none
  const int32_t* positions;  // [max_tokens]
};
// Normalizes each head of queries and keys, and then applies the rotary position of its token.
cudaError_t LaunchPlaceHeads(DType dtype, const PlaceHeadsArgs& args, const BatchCounts* counts,
                             int64_t max_tokens, cudaStream_t stream);

enum class Activation : int32_t {
  kGeluErf = 0,
  kGeluTanh = 1,
  kRelu = 2,
  kSilu = 3,
  kIdentity = 4
};

struct ActivateArgs {
  Activation activation;
  void* values;        // [max_tokens, width], in place
  uint8_t* quantized;  // [max_tokens, width] e4m3, or null
  float* scales;       // [max_tokens], or null
  // A gated network: values are [max_tokens, 2 * width], gate and up, and `out` [max_tokens, width]
  // (or `quantized`) = activation(gate) * up.
  bool gated = false;
  void* out = nullptr;
};
// values = activation(values); with `quantized` only that is written. A scale is the row's largest
// magnitude / 448 (e4m3's largest), 1 for a row that is zeros or below 1e-30; value = quantized *
// scale.
cudaError_t LaunchActivate(DType dtype, const ActivateArgs& args, const BatchCounts* counts,
                           int64_t max_tokens, int64_t width, cudaStream_t stream);

struct PoolTask {     // of one sequence
  int32_t pooling;    // ATTENDANT_CUDA_POOL_*
  int32_t normalize;  // 0 or 1
  int32_t dims;       // [1, hidden]
  int32_t unused;
};
struct PoolArgs {
  const void* states;         // [max_tokens, hidden]
  const int32_t* seq_starts;  // [max_sequences + 1]
  const PoolTask* tasks;      // [max_sequences]
  float* pooled;              // [max_sequences, hidden]
};
// Row i of `pooled` gets its first `dims` values and keeps the rest; a sequence that is not pooled
// keeps all. As kernels/core/pooling.h but for the order of sums: truncated first, then normalized
// to x / max(|x|, 1e-12).
cudaError_t LaunchPool(DType dtype, const PoolArgs& args, const BatchCounts* counts,
                       int64_t max_sequences, int64_t hidden, cudaStream_t stream);

// out [rows, width] f32 = values [rows, width]
cudaError_t LaunchToFloat(DType dtype, const void* values, float* out, int64_t rows, int64_t width,
                          cudaStream_t stream);

}  // namespace attendant::cuda
