// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/number_types.h"

// Everything that is computed on the device besides the matrix products, as functions that put one
// kernel into `stream`. Every pointer is to device memory, aligned to 16 bytes; `hidden` is a
// multiple of 8.
//
// How many rows, sequences and attention tasks there are is read on the device, from BatchCounts: a
// recorded graph has launches of its bucket's largest size, and what is beyond the counts does
// nothing. Rows beyond the counts hold finite numbers or are never read.
//
// A row's bits depend on that row alone (attention: on its sequence), never on the counts.
// Errors: what the launch returned (cudaGetLastError); nothing waits.
namespace attendant::cuda {

struct BatchCounts {
  int32_t tokens = 0;
  int32_t sequences = 0;
  int32_t attention_tasks = 0;
  int32_t unused = 0;
};

// Format is of the states: kF32, kBf16 or kF16. Tables, gamma and beta are f32 for kF32, else the
// tables are in the states' format and gamma and beta f32. Sums and statistics are f32.

struct EmbedArgs {
  const int32_t* token_ids;        // [max_tokens]
  const int32_t* positions;        // [max_tokens]
  const int32_t* segment_ids;      // [max_tokens]
  const void* token_embedding;     // [vocab, hidden]
  const void* position_embedding;  // [max_positions, hidden]
  const void* segment_embedding;   // [segment_types, hidden]
  const float* gamma;              // [hidden]
  const float* beta;               // [hidden]
  float epsilon;
  void* states;  // [max_tokens, hidden]
  // fp8 only, else null: the states once more as the next product's operand.
  uint8_t* quantized;  // [max_tokens, hidden] e4m3
  float* scales;       // [max_tokens]
};
// states = LayerNorm(token + position + segment)
cudaError_t LaunchEmbed(Format format, const EmbedArgs& args, const BatchCounts* counts,
                        int64_t max_tokens, int64_t hidden, cudaStream_t stream);

struct ResidualNormArgs {
  const void* update;  // [max_tokens, hidden]: a product with its bias
  const float* gamma;  // [hidden]
  const float* beta;   // [hidden]
  float epsilon;
  void* states;        // [max_tokens, hidden]
  uint8_t* quantized;  // as in EmbedArgs
  float* scales;
};
// states = LayerNorm(states + update)
cudaError_t LaunchResidualNorm(Format format, const ResidualNormArgs& args,
                               const BatchCounts* counts, int64_t max_tokens, int64_t hidden,
                               cudaStream_t stream);

enum class Function : int32_t { kGeluErf = 0, kGeluTanh = 1, kRelu = 2, kIdentity = 3 };

struct ActivateArgs {
  Function function;
  void* values;        // [max_tokens, width], in place
  uint8_t* quantized;  // [max_tokens, width] e4m3, or null
  float* scales;       // [max_tokens], or null
};
// values = function(values); with `quantized` only that is written. A scale is the row's largest
// magnitude / 448 (e4m3's largest), 1 for a row of zeros; value = quantized * scale.
cudaError_t LaunchActivate(Format format, const ActivateArgs& args, const BatchCounts* counts,
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
cudaError_t LaunchPool(Format format, const PoolArgs& args, const BatchCounts* counts,
                       int64_t max_sequences, int64_t hidden, cudaStream_t stream);

// out [rows, width] f32 = values [rows, width]
cudaError_t LaunchToFloat(Format format, const void* values, float* out, int64_t rows,
                          int64_t width, cudaStream_t stream);

// Exact attention over sequences of any lengths, without padding, in memory that does not grow with
// len^2: context = softmax(scale * q k^T + bias, where allowed) v. Rows with no key allowed are
// zeros.
struct AttentionArgs {
  // Row t of head h begins at pointer + t * row_stride + h * head_dim, in elements.
  const void* q;  // [query tokens, heads, head_dim]
  const void* k;  // [key tokens, heads, head_dim]
  const void* v;  // [key tokens, heads, head_dim]
  void* context;  // [query tokens, heads, head_dim]
  int64_t q_stride, k_stride, v_stride, context_stride;
  float scale;         // 1 / sqrt(head_dim)
  AttentionRule rule;  // causal, window (attention_plan.h)
  // Null, or what each (query, key) of each sequence adds to its score: -inf lets it not take part.
  // That of sequence s begins at bias + mask_starts[s], its rows bias_stride apart (0: one row for
  // all queries), the same for all heads.
  const float* bias;
  int64_t bias_stride;
  const uint8_t* allowed;  // null, or 0 where a (query, key) does not take part; otherwise as bias
  int64_t allowed_stride;
  const int64_t* mask_starts;  // [sequences]; null without bias and allowed
  const AttentionTask* tasks;  // [max_tasks], on the device
};
// head_dim is 32, 64 or 128, others with Format::kF32 only (up to 256).
cudaError_t LaunchAttention(Format format, const AttentionArgs& args, const BatchCounts* counts,
                            int64_t max_tasks, int64_t heads, int64_t head_dim,
                            cudaStream_t stream);
bool HasAttention(Format format, int64_t head_dim);

// softmax(scale * q k^T) of one sequence and one head, in f32: out [len, len].
struct AttentionWeightsArgs {
  const void* q;  // [len, head_dim] with row strides as above
  const void* k;
  int64_t q_stride, k_stride;
  float scale;
  float* out;
};
cudaError_t LaunchAttentionWeights(Format format, const AttentionWeightsArgs& args, int64_t len,
                                   int64_t head_dim, cudaStream_t stream);

}  // namespace attendant::cuda
