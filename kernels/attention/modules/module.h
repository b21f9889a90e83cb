// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/attention/attention.h"
#include "kernels/core/attention_module.h"

namespace attendant::attention {

// A PyTorch attention module with its weights packed for this machine. A call names it in `module`,
// with kind(), its dtype, and operands of one head:
//
//   kMultiHead    query [queries, hidden], key [keys, key_dim], value [keys, value_dim]
//   kTransformer  query [len, hidden]; keys are the queries, and key and value are not read
//
// Masks and weights have the module's heads; a transformer's weights are those of its last layer.
// Immutable, thread-safe; must outlive the calls.
class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const ModuleConfig& config() const { return config_; }
  DType dtype() const { return dtype_; }
  Kind kind() const {
    return config_.type == ModuleType::kMultiHead ? Kind::kMultiHead : Kind::kTransformer;
  }
  const cpu::IsaLevel& isa() const { return isa_; }  // of its kernels
  absl::string_view isa_name() const;                // of that: "avx512_bf16"
  // The bytes of the packed weights. The original weights stay referenced, for RunReference.
  virtual int64_t weight_bytes() const = 0;

  // The functions Measure and Run of attention.h call these. REQUIRES for Run: Measure accepted the
  // call.
  virtual absl::StatusOr<Cost> Measure(const Call& call, int threads) const = 0;
  virtual absl::Status Run(const Call& call, ThreadPool& pool, std::span<std::byte> scratch,
                           const Outputs& outputs) const = 0;
  virtual absl::Status RunReference(const Call& call, const Outputs& outputs) const = 0;

 protected:
  Module(const ModuleConfig& config, DType dtype, const cpu::IsaLevel& isa)
      : config_(config), dtype_(dtype), isa_(isa) {}

  // Projected operands of the call's dtype: heads side by side in rows of `row_stride` values.
  struct Projected {
    const std::byte* q = nullptr;  // [query tokens]
    const std::byte* k = nullptr;  // [key tokens], as v
    const std::byte* v = nullptr;
    int64_t row_stride = 0;
  };

  // Checks what is the same for every module: its kind and dtype, operands of one head with the
  // widths of its config, and masks of its heads. The cost is that of RunHeads, with the module's
  // output.
  absl::StatusOr<Cost> MeasureHeads(const Call& call, int threads) const;
  // context [query tokens, hidden], of the call's dtype = exact attention of all heads, masked as
  // the call says. `weights` as in Outputs; null: none. REQUIRES: MeasureHeads accepted the call,
  // and scratch has what it says.
  absl::Status RunHeads(const Call& call, const Projected& projected, ThreadPool& pool,
                        std::span<std::byte> scratch, std::byte* context, float* weights) const;

 private:
  Call HeadsCall(const Call& call, const Projected& projected) const;

  ModuleConfig config_;
  DType dtype_;
  const cpu::IsaLevel& isa_;
};

// The most bytes that MakeModule packs a linear layer [outputs, inputs] and its bias to, whatever
// the kernels: these fill up outputs and inputs.
int64_t MaxPackedBytes(int64_t outputs, int64_t inputs);

// Packs the weights for the kernels of `isa` (FindIsa). INVALID_ARGUMENT when config and weights
// disagree; UNIMPLEMENTED for a dtype that is not f32 or bf16, or has no fast matmuls with `isa`;
// RESOURCE_EXHAUSTED when the packed weights do not fit in memory; UNAVAILABLE when `isa` is null.
absl::StatusOr<std::unique_ptr<const Module>> MakeModule(const ModuleConfig& config,
                                                         ModuleWeights weights, DType dtype,
                                                         const cpu::IsaLevel* isa);

}  // namespace attendant::attention
