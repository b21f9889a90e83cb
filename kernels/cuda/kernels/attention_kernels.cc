// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/kernels/attention_kernels.h"

#include "kernels/cuda/kernels/attention_variants.h"

namespace attendant::cuda {

bool HasAttention(Format format, int64_t head_dim) {
  if (head_dim <= 0) return false;
  return format == Format::kF32 ? head_dim % 4 == 0 && head_dim <= kMaxSimtHeadDim
                                : head_dim % 8 == 0 && head_dim <= kMaxTensorHeadDim;
}

cudaError_t PrepareAttention(Format format, int64_t head_dim) {
  if (!HasAttention(format, head_dim)) return cudaErrorInvalidValue;
  return format == Format::kF32 ? PrepareSimtAttention(head_dim)
                                : PrepareTensorAttention(format, head_dim);
}

cudaError_t LaunchAttention(Format format, const AttentionArgs& args, const BatchCounts* counts,
                            int64_t max_tasks, int64_t heads, int64_t head_dim,
                            cudaStream_t stream) {
  if (!HasAttention(format, head_dim)) return cudaErrorInvalidValue;
  if (format == Format::kF32) {
    return LaunchSimtAttention(args, counts, max_tasks, heads, head_dim, stream);
  }
  return LaunchTensorAttention(format, args, counts, max_tasks, heads, head_dim, stream);
}

}  // namespace attendant::cuda
