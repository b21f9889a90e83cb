// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/attention/modules/module.h"
#include "kernels/attention/modules/module_linear.h"

namespace attendant::attention {

// The four maps of multi-head attention, packed. Immutable, thread-safe.
struct MultiHeadProjections {
  static absl::StatusOr<MultiHeadProjections> Create(MatmulCache& cache,
                                                     const MultiHeadWeights& weights,
                                                     const ModuleLinear::Options& output);
  int64_t bytes() const;

  ModuleLinear query, key, value;  // into the cache's dtype
  ModuleLinear output;
};

// The call of exact attention inside: heads side by side in rows of `hidden` values.
//   q [query tokens, hidden], k, v [key tokens, hidden], of the outer call's dtype
Call HeadsCall(const Module& module, const Call& outer, const std::byte* q, const std::byte* k,
               const std::byte* v);

// out = concat over heads of softmax(q_h k_h^T / sqrt(head_dim)) v_h, projected; q, k and v are
// projections of the operands (Vaswani et al. 2017), as PyTorch's nn.MultiheadAttention has it.
class MultiHead final : public Module {
 public:
  static absl::StatusOr<std::unique_ptr<const Module>> Create(const ModuleConfig& config,
                                                              ModuleWeights weights, DType dtype,
                                                              const cpu::IsaLevel& isa);

  int64_t weight_bytes() const override { return projections_.bytes(); }
  absl::StatusOr<Cost> Measure(const Call& call, int threads) const override;
  absl::Status Run(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                   const Outputs& outputs) const override;
  absl::Status RunReference(const Call& call, const Outputs& outputs) const override;

 private:
  MultiHead(const ModuleConfig& config, ModuleWeights weights, MatmulCache cache,
            MultiHeadProjections projections, const cpu::IsaLevel& isa);

  struct Buffers;
  struct Side;
  void ProjectBlock(const Call& call, const Side& side, int64_t begin,
                    ModuleLinearExecutor& executor, std::byte* block) const;
  void OutputBlock(const Call& call, const std::byte* context, int64_t begin,
                   ModuleLinearExecutor& executor, std::byte* block, const Outputs& outputs) const;

  ModuleWeights weights_;  // as they came, for the reference
  MatmulCache cache_;
  MultiHeadProjections projections_;
};

// What is the same for every module: its kind and dtype, operands of one head with the widths of
// its config, and masks of its heads.
absl::Status CheckModuleCall(const Module& module, const Call& call);

}  // namespace attendant::attention
