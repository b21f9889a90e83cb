// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/attention/modules/module.h"
#include "kernels/attention/modules/module_linear.h"
#include "kernels/attention/modules/multi_head.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::attention {

// PyTorch's nn.TransformerEncoder, and nn.TransformerEncoderLayer as one layer of it:
//
//   post-norm  x = norm1(x + attention(x));  x = norm2(x + ffn_down(act(ffn_up(x))))
//   pre-norm   x = x + attention(norm1(x));  x = x + ffn_down(act(ffn_up(norm2(x))))
//
// and a final norm where there is one. Between layers x is f32 in every dtype.
class TransformerEncoder final : public Module {
 public:
  static absl::StatusOr<std::unique_ptr<const Module>> Create(const ModuleConfig& config,
                                                              ModuleWeights weights, DType dtype,
                                                              const cpu::IsaLevel& isa);

  int64_t weight_bytes() const override;
  absl::StatusOr<Cost> Measure(const Call& call, int threads) const override;
  absl::Status Run(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                   const Outputs& outputs) const override;
  absl::Status RunReference(const Call& call, const Outputs& outputs) const override;

 private:
  struct Norm {
    std::vector<float> gamma, beta;  // [hidden]
  };
  struct Layer {
    MultiHeadProjections attention;
    ModuleLinear ffn_up, ffn_down;
    Norm attention_norm, ffn_norm;
  };
  struct Buffers;
  class BlockRunner;

  TransformerEncoder(const ModuleConfig& config, ModuleWeights weights, MatmulCache cache,
                     const cpu::IsaLevel& isa);
  absl::Status PackLayer(const TransformerLayerWeights& weights);
  static Norm MakeNorm(const LayerNormWeights& weights);

  ModuleWeights weights_;  // as they came, for the reference
  MatmulCache cache_;
  const cpu::RowKernels& rows_;  // of the dtype
  std::vector<Layer> layers_;
  Norm final_norm_;
  std::vector<float> zeros_;  // [hidden]
};

}  // namespace attendant::attention
