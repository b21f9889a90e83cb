// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/kernels/attention_kernels.h"

// What LaunchAttention chooses from; arguments are its own.
namespace attendant::cuda {

// Matmuls on tensor cores: kBf16 and kF16, head_dim a multiple of 8 up to 128.
inline constexpr int64_t kMaxTensorHeadDim = 128;
cudaError_t LaunchTensorAttention(Format format, const AttentionArgs& args,
                                  const BatchCounts* counts, int64_t max_tasks, int64_t heads,
                                  int64_t head_dim, cudaStream_t stream);
cudaError_t PrepareTensorAttention(Format format, int64_t head_dim);

// f32 throughout, without tensor cores: head_dim a multiple of 4 up to 256.
inline constexpr int64_t kMaxSimtHeadDim = 256;
cudaError_t LaunchSimtAttention(const AttentionArgs& args, const BatchCounts* counts,
                                int64_t max_tasks, int64_t heads, int64_t head_dim,
                                cudaStream_t stream);
cudaError_t PrepareSimtAttention(int64_t head_dim);

}  // namespace attendant::cuda
