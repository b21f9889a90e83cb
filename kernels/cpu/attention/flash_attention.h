// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/dtype.h"
#include "kernels/cpu/simd/attention/attention_args.h"
#include "kernels/cpu/simd/cpu_isa.h"

namespace attendant::cpu {

struct VectorKernels;

// Exact attention in memory that does not grow with the product of the lengths: scores live in
// tiles of a few queries by some hundred keys. The caller cuts the work into tasks and has the
// threads; a task is one head of one sequence, for some of its queries. Copyable, thread-safe.
class FlashAttention {
 public:
  // For operands (q, k and v) in f32 or bf16, with the best instructions of this machine or those
  // asked for. Every instruction set takes both formats; without AVX512_BF16, bf16 is widened to
  // f32 as it is read. UNAVAILABLE when the processor lacks the instructions; INVALID_ARGUMENT for
  // other formats.
  static absl::StatusOr<FlashAttention> Create(DType operands, CpuIsa isa = CpuIsa::kAuto);

  // The same of kernels that were found before. REQUIRES: f32 or bf16.
  FlashAttention(const VectorKernels& kernels, DType operands);

  absl::string_view isa() const;

  // The size of args.scratch, for any part of the queries and up to `keys` keys: a mask may leave
  // out the last ones, and other sequences are shorter. Grows with the widths, and with `keys` up
  // to some hundred.
  int64_t ScratchBytes(int64_t keys, int64_t head_dim, int64_t value_dim) const;

  void Run(const AttentionArgs& args) const;

  // The weights themselves, [queries, keys] with rows `weights_stride` apart, in f32: computed once
  // more from queries and keys. `args` as for Run, without values and output; its scratch has
  // WeightsScratchBytes, which grow with `keys`.
  void Weights(const AttentionArgs& args, float* weights, int64_t weights_stride) const;
  int64_t WeightsScratchBytes(int64_t keys, int64_t head_dim) const;

 private:
  const VectorKernels* kernels_;
  void (*attend_)(const AttentionArgs&);
  void (*compute_weights_)(const AttentionArgs&, float*, int64_t);
};

}  // namespace attendant::cpu
