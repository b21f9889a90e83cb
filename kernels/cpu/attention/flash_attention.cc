// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/flash_attention.h"

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/isa_level.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

absl::StatusOr<FlashAttention> FlashAttention::Create(DType operands, CpuIsa isa) {
  if (operands != DType::kF32 && operands != DType::kBf16) {
    return absl::InvalidArgumentError(
        absl::StrCat("attention takes f32 or bf16, not ", DTypeName(operands)));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const IsaLevel* level, FindIsaLevel(isa));
  return FlashAttention(level->kernels, operands);
}

FlashAttention::FlashAttention(const VectorKernels& kernels, DType operands)
    : kernels_(&kernels),
      attend_(operands == DType::kBf16 ? kernels.attention_bf16 : kernels.attention_f32),
      compute_weights_(operands == DType::kBf16 ? kernels.attention_weights_bf16
                                                : kernels.attention_weights_f32) {}

absl::string_view FlashAttention::isa() const { return kernels_->isa; }

int64_t FlashAttention::ScratchBytes(int64_t keys, int64_t head_dim, int64_t value_dim) const {
  return kernels_->attention_scratch_bytes(keys, head_dim, value_dim);
}

void FlashAttention::Run(const AttentionArgs& args) const { attend_(args); }

void FlashAttention::Weights(const AttentionArgs& args, float* weights,
                             int64_t weights_stride) const {
  compute_weights_(args, weights, weights_stride);
}

int64_t FlashAttention::WeightsScratchBytes(int64_t keys, int64_t head_dim) const {
  return kernels_->attention_weights_scratch_bytes(keys, head_dim);
}

}  // namespace attendant::cpu
