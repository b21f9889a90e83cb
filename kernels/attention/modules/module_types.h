// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/attention/modules/module.h"

namespace attendant::attention {

// The two types of modules, for MakeModule, which checks the arguments. Throw std::exception.
// REQUIRES: f32 or bf16; ValidateWeights(config, weights) is OK.

// out = concat over heads of softmax(q_h k_h^T / sqrt(head_dim)) v_h, projected; q, k and v are
// projections of the operands (Vaswani et al. 2017), as PyTorch's nn.MultiheadAttention has it.
absl::StatusOr<std::unique_ptr<const Module>> MakeMultiHead(const ModuleConfig& config,
                                                            ModuleWeights weights, DType dtype,
                                                            const cpu::IsaLevel& isa);

// PyTorch's nn.TransformerEncoder, and nn.TransformerEncoderLayer as one layer of it: the encoder
// of EncoderOf(config).
absl::StatusOr<std::unique_ptr<const Module>> MakeTransformerEncoder(const ModuleConfig& config,
                                                                     ModuleWeights weights,
                                                                     DType dtype,
                                                                     const cpu::IsaLevel& isa);

}  // namespace attendant::attention
