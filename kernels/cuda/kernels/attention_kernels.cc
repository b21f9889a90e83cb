// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/kernels/attention_kernels.h"

namespace attendant::cuda {

bool HasAttention(DType dtype, int64_t head_dim) {
  if (head_dim <= 0) return false;
  return dtype == DType::kF32 ? head_dim % 4 == 0 && head_dim <= kMaxSimtHeadDim
                              : head_dim % 8 == 0 && head_dim <= kMaxTensorHeadDim;
}

cudaError_t PrepareAttention(DType dtype, int64_t head_dim) {
  if (!HasAttention(dtype, head_dim)) return cudaErrorInvalidValue;
  return dtype == DType::kF32 ? PrepareSimtAttention(head_dim)
                              : PrepareTensorAttention(dtype, head_dim);
}

cudaError_t LaunchAttention(DType dtype, const AttentionArgs& args, const BatchCounts* counts,
                            int64_t max_tasks, int64_t heads, int64_t head_dim,
                            cudaStream_t stream) {
  if (!HasAttention(dtype, head_dim)) return cudaErrorInvalidValue;
  if (dtype == DType::kF32) {
    return LaunchSimtAttention(args, counts, max_tasks, heads, head_dim, stream);
  }
  return LaunchTensorAttention(dtype, args, counts, max_tasks, heads, head_dim, stream);
}

}  // namespace attendant::cuda
