// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/modules/module_types.h"

#include <algorithm>
#include <utility>

#include "kernels/attention/check_call.h"
#include "kernels/attention/modules/token_rows.h"
#include "kernels/attention/reference/reference_module.h"
#include "kernels/attention/values.h"
#include "kernels/core/arena.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/encoder/layer_runner.h"
#include "kernels/cpu/encoder/packed_layers.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::attention {
namespace {

// The encoder of EncoderOf(config), computed by the layers of the CPU back end with the call's
// masks. Between layers the states are f32 in every dtype.
class TransformerEncoder final : public Module {
 public:
  TransformerEncoder(const ModuleConfig& config, ModuleWeights weights, cpu::PackedLayers layers,
                     const cpu::IsaLevel& isa)
      : Module(config, layers.dtype, isa),
        weights_(std::move(weights)),
        layers_(std::move(layers)) {}

  int64_t weight_bytes() const override { return layers_.bytes(); }
  absl::StatusOr<Cost> Measure(const Call& call, int threads) const override;
  absl::Status Run(const Call& call, ThreadPool& pool, std::span<std::byte> memory,
                   const Outputs& outputs) const override;
  absl::Status RunReference(const Call& call, const Outputs& outputs) const override {
    reference::TransformerEncoder(config(), weights_, call, outputs);
    return absl::OkStatus();
  }

 private:
  ModuleWeights weights_;  // as they came, for the reference
  cpu::PackedLayers layers_;
};

absl::StatusOr<Cost> TransformerEncoder::Measure(const Call& call, int threads) const {
  ATTENDANT_ASSIGN_OR_RETURN(Cost cost, MeasureHeads(call, threads));
  if (!SameLengths(call.queries, call.keys) || call.queries.packed() != call.keys.packed()) {
    return absl::InvalidArgumentError(
        "a transformer's keys must be its queries: their lengths differ");
  }
  const int64_t hidden = config().hidden, tokens = call.queries.tokens();
  const int64_t widths = 4 * hidden + 2 * config().ffn;
  ATTENDANT_ASSIGN_OR_RETURN(
      int64_t matmuls,
      CheckedProduct("multiply-adds of layers, tokens and widths",
                     {config().layers, tokens + cpu::kMaxBlockRows, hidden, widths}));
  ATTENDANT_ASSIGN_OR_RETURN(
      int64_t attention,
      CheckedProduct("multiply-adds of layers and attention", {config().layers, cost.operations}));
  cost.operations = matmuls + attention;
  Arena rows, of_thread;
  const cpu::Activations activations(layers_, tokens, rows);
  const cpu::LayerRunner runner(layers_, 1, cpu::FewRows::kApart, of_thread);
  cost.scratch_bytes += rows.used_bytes() + threads * of_thread.used_bytes();
  return cost;
}

absl::Status TransformerEncoder::Run(const Call& call, ThreadPool& pool,
                                     std::span<std::byte> memory, const Outputs& outputs) const {
  const int64_t hidden = config().hidden, tokens = call.queries.tokens();
  Arena scratch(memory);
  const cpu::Activations activations(layers_, tokens, scratch);
  cpu::LayerRunner runner(layers_, pool.threads(), cpu::FewRows::kApart, scratch);
  const std::span<std::byte> rest = memory.subspan(static_cast<size_t>(scratch.used_bytes()));
  const std::byte* qkv = activations.qkv.data();
  const int64_t row_bytes = hidden * layers_.qkv_value_bytes();
  ATTENDANT_RETURN_IF_ERROR(runner.Run(
      {.count = tokens, .last_count = tokens},
      [&](int64_t row, float* states, float*) {
        const std::byte* from = TokenRow(call.query, call.queries, call.dtype, row);
        for (int64_t i = 0; i < hidden; ++i) states[i] = ReadValue(from, call.dtype, i);
      },
      [&](int64_t layer) {
        const bool last = layer + 1 == config().layers;
        return RunHeads(call, {qkv, qkv + row_bytes, qkv + 2 * row_bytes, 3 * hidden}, pool, rest,
                        reinterpret_cast<std::byte*>(activations.context.data()),
                        last ? outputs.attention_weights : nullptr);
      },
      activations, pool));
  pool.ParallelFor(CeilDivide(tokens, cpu::kMaxBlockRows), [&](int64_t block, int) {
    const int64_t begin = block * cpu::kMaxBlockRows;
    for (int64_t row = begin; row < std::min(tokens, begin + cpu::kMaxBlockRows); ++row) {
      std::byte* to = TokenRow(outputs.out, call.queries, call.dtype, row);
      const float* states = activations.states.row(row);
      for (int64_t i = 0; i < hidden; ++i) WriteValue(to, call.dtype, i, states[i]);
    }
  });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Module>> MakeTransformerEncoder(const ModuleConfig& config,
                                                                     ModuleWeights weights,
                                                                     DType dtype,
                                                                     const cpu::IsaLevel& isa) {
  ATTENDANT_ASSIGN_OR_RETURN(cpu::PackedLayers layers,
                             cpu::PackedLayers::Create(EncoderOf(config), weights, {dtype, isa}));
  return std::make_unique<TransformerEncoder>(config, std::move(weights), std::move(layers), isa);
}

}  // namespace attendant::attention
