// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/scored/scored_attention.h"

// Linear attention in time that grows with the length (Katharopoulos et al. 2020).
namespace attendant::attention {

// Adds scratch and operations to `cost`. REQUIRES: the call is one of linear attention, without
// weights, and otherwise accepted; RunLinearSums requires the same.
absl::Status MeasureLinearSums(const Call& call, int threads, Cost& cost);

void RunLinearSums(const Call& call, const ScoredKernels& kernels, ThreadPool& pool,
                   std::span<std::byte> scratch, const Outputs& outputs);

// rows [count, dim] = feature map of some keys or queries of one head; 0 for keys that the key mask
// leaves out.
void LoadKeyFeatures(const ScoredKernels& kernels, const Call& call, const KeyRange& range,
                     float* rows);
void LoadQueryFeatures(const ScoredKernels& kernels, const Call& call, const QueryBlock& block,
                       float* rows);

}  // namespace attendant::attention
