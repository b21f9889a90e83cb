// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/scored/scored_kernels.h"

// Linear attention in time that grows with the length (Katharopoulos et al. 2020).
namespace attendant::attention {

// Adds scratch and operations to `cost`. REQUIRES: the call is one of linear attention, without
// weights, and otherwise accepted; the same of RunLinearSums.
absl::Status MeasureLinearSums(const Call& call, int threads, Cost& cost);

void RunLinearSums(const Call& call, const FamilyKernels& kernels, ThreadPool& pool,
                   std::span<std::byte> scratch, const Outputs& outputs);

// rows [count, dim] = feature map of one head's keys or queries from `begin` on; 0 for keys that
// the key mask leaves out.
void LoadKeyFeatures(const FamilyKernels& kernels, const Call& call, int64_t sequence, int64_t head,
                     int64_t begin, int64_t count, float* rows);
void LoadQueryFeatures(const FamilyKernels& kernels, const Call& call, int64_t sequence,
                       int64_t head, int64_t begin, int64_t count, float* rows);

}  // namespace attendant::attention
