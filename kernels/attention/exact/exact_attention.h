// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/attention/attention.h"
#include "kernels/cpu/attention/flash_attention.h"

// Exact softmax attention on the CPU, for every kind that is one with a mask: dot-product, flash
// and local; and for multi-head inside.
namespace attendant::attention {

// The kernel of the call's instruction set and dtype, f32 or bf16. REQUIRES: call.isa.
cpu::FlashAttention FlashAttentionOf(const Call& call);

// The place of `first`, which is thread 0's, in the buffers of thread `index`: every thread has
// `thread_bytes`, one after the other.
template <typename T>
T* OfThread(T* first, int index, int64_t thread_bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(first) + index * thread_bytes);
}

// The call's scale, or 1 / sqrt(query dim).
float ScaleOf(const Call& call);

// Checks dims, and computes outputs, scratch and operations. REQUIRES: CheckCall accepted the call.
absl::StatusOr<Cost> MeasureExact(const Call& call, int threads);

// REQUIRES: MeasureExact accepted the call for pool.threads(), and scratch has what it says.
absl::Status RunExact(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                      const Outputs& outputs);

}  // namespace attendant::attention
