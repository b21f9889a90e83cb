// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/attention/modules/module.h"
#include "kernels/core/arena.h"
#include "kernels/cpu/matmul/packed_linear.h"

namespace attendant::attention {

// out = concat over heads of softmax(q_h k_h^T / sqrt(head_dim)) v_h, projected; q, k and v are
// projections of the operands (Vaswani et al. 2017), as PyTorch's nn.MultiheadAttention has it.
class MultiHead final : public Module {
 public:
  // Throws std::exception. REQUIRES: f32 or bf16.
  static absl::StatusOr<std::unique_ptr<const Module>> Create(const ModuleConfig& config,
                                                              ModuleWeights weights, DType dtype,
                                                              const cpu::IsaLevel& isa);

  int64_t weight_bytes() const override;
  absl::StatusOr<Cost> Measure(const Call& call, int threads) const override;
  absl::Status Run(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                   const Outputs& outputs) const override;
  absl::Status RunReference(const Call& call, const Outputs& outputs) const override;

 private:
  // A packed linear layer with its matmul, whose results are of the module's dtype.
  struct Projection {
    std::unique_ptr<cpu::Matmul> matmul;
    Arena memory;
    cpu::PackedLinear linear;
  };
  struct Buffers;
  struct Path;

  // Projects the rows of all paths, which end where each says.
  absl::Status Project(std::span<const Path> paths, const Buffers& buffers, ThreadPool& pool) const;

  MultiHead(const ModuleConfig& config, ModuleWeights weights, DType dtype,
            const cpu::IsaLevel& isa)
      : Module(config, dtype, isa), weights_(std::move(weights)) {}

  ModuleWeights weights_;                  // as they came, for the reference
  std::array<Projection, 4> projections_;  // query, key, value, output
};

}  // namespace attendant::attention
