// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "kernels/attention/modules/module.h"
#include "kernels/cpu/encoder/packed_layers.h"

namespace attendant::attention {

// PyTorch's nn.TransformerEncoder, and nn.TransformerEncoderLayer as one layer of it: the encoder
// of EncoderOf(config), computed by the layers of the CPU back end with the call's masks. Between
// layers the states are f32 in every dtype.
class TransformerEncoder final : public Module {
 public:
  // Throws std::exception. REQUIRES: f32 or bf16.
  static absl::StatusOr<std::unique_ptr<const Module>> Create(const ModuleConfig& config,
                                                              ModuleWeights weights, DType dtype,
                                                              const cpu::IsaLevel& isa);

  int64_t weight_bytes() const override { return layers_.bytes(); }
  absl::StatusOr<Cost> Measure(const Call& call, int threads) const override;
  absl::Status Run(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                   const Outputs& outputs) const override;
  absl::Status RunReference(const Call& call, const Outputs& outputs) const override;

 private:
  TransformerEncoder(const ModuleConfig& config, ModuleWeights weights, cpu::PackedLayers layers,
                     const cpu::IsaLevel& isa);

  ModuleWeights weights_;  // as they came, for the reference
  cpu::PackedLayers layers_;
};

}  // namespace attendant::attention
