// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/kernels/attention_plan.h"
#include "kernels/cuda/kernels/batch_counts.h"
#include "kernels/cuda/runtime/number_types.h"

// Attention on the device; what kernels.h says of pointers, counts, bits and errors holds here too.
namespace attendant::cuda {

// The relative position bias: the part of a self-attention score that depends on the distance from
// the query's position to the key's.
struct DistanceRule {
  const int32_t* positions = nullptr;  // [tokens]; null: distances do not enter
  // Null, or what is added to scores: that of head h and distance d at h * stride + d.
  const float* scores = nullptr;
  int64_t stride = 0;
};

// Exact attention over sequences of any lengths, without padding, in memory that does not grow with
// len^2: context = softmax(scale * q k^T + bias, where allowed) v. Rows with no key allowed are
// zeros.
struct AttentionArgs {
  // Row t of head h begins at pointer + t * row_stride + h * head_dim, in elements. Strides are
  // multiples of 8, for f32 of 4.
  const void* q;  // [query tokens, heads, head_dim]
  const void* k;  // [key tokens, heads / heads_per_key, head_dim]
  const void* v;  // likewise
  void* context;  // [query tokens, heads, head_dim]
  int64_t q_stride, k_stride, v_stride, context_stride;
  float scale;                // 1 / sqrt(head_dim); above 0
  AttentionRule rule;         // causal, window (attention_plan.h); of distances where they enter
  int32_t heads_per_key = 1;  // so many heads that follow one another share keys and values
  DistanceRule distance{};
  // Null, or the bias that is added to the score of each (query, key) of each sequence; -inf leaves
  // the pair out. The biases of sequence s begin at bias + mask_starts[s], with rows bias_stride
  // apart (0: one row for all queries), the same for all heads.
  const float* bias;
  int64_t bias_stride;
  const uint8_t* allowed;  // null, or 0 where a (query, key) does not take part; otherwise as bias
  int64_t allowed_stride;
  const int64_t* mask_starts;  // [sequences]; null without bias and allowed
  const AttentionTask* tasks;  // [max_tasks], on the device
};
// REQUIRES: HasAttention, PrepareAttention on this device.
cudaError_t LaunchAttention(DType dtype, const AttentionArgs& args, const BatchCounts* counts,
                            int64_t max_tasks, int64_t heads, int64_t head_dim,
                            cudaStream_t stream);
// True if there are kernels for this head_dim. Tensor cores (kBf16, kF16, and kFp8, whose states
// are bf16) take any multiple of 8 up to 256, at full speed 32, 64, 128 and 256. kF32 takes any
// multiple of 4 up to 256.
bool HasAttention(DType dtype, int64_t head_dim);
// Lets the current device's kernels have the shared memory that they need. Once for each device,
// before the first launch and not while a stream is being captured; again does no harm.
cudaError_t PrepareAttention(DType dtype, int64_t head_dim);

// softmax(scale * q k^T + bias, where allowed) of one sequence and one head, in f32:
// out [queries, len]; rows with no key allowed are zeros. head_dim as HasAttention.
struct AttentionWeightsArgs {
  const void* q;  // [len, head_dim] with row strides as above
  const void* k;
  int64_t q_stride, k_stride;
  float scale;
  float* out;
  int64_t queries = 0;      // so many rows of q, none beyond len; 0: all
  int64_t keys = 0;         // the first so many rows of k take part; 0: all
  int64_t first_query = 0;  // the first of these rows
  AttentionRule rule{};
  DistanceRule distance{};  // positions [len]; scores of this head
};
cudaError_t LaunchAttentionWeights(DType dtype, const AttentionWeightsArgs& args, int64_t len,
                                   int64_t head_dim, cudaStream_t stream);

// The two that LaunchAttention chooses from; arguments are those of LaunchAttention.
//
// Matmuls on tensor cores: kBf16 and kF16, head_dim a multiple of 8 up to 256.
inline constexpr int64_t kMaxTensorHeadDim = 256;
cudaError_t LaunchTensorAttention(DType dtype, const AttentionArgs& args, const BatchCounts* counts,
                                  int64_t max_tasks, int64_t heads, int64_t head_dim,
                                  cudaStream_t stream);
cudaError_t PrepareTensorAttention(DType dtype, int64_t head_dim);

// f32 throughout, without tensor cores: head_dim a multiple of 4 up to 256.
inline constexpr int64_t kMaxSimtHeadDim = 256;
cudaError_t LaunchSimtAttention(const AttentionArgs& args, const BatchCounts* counts,
                                int64_t max_tasks, int64_t heads, int64_t head_dim,
                                cudaStream_t stream);
cudaError_t PrepareSimtAttention(int64_t head_dim);

}  // namespace attendant::cuda
