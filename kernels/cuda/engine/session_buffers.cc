// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/session_buffers.h"

#include <algorithm>

#include "kernels/cuda/engine/batch_layout.h"
#include "kernels/cuda/model/encoder_shape.h"

namespace attendant::cuda {
namespace {

// Enough for a copy to run at the bus's speed.
constexpr int64_t kMinPieceFloats = int64_t{1} << 20;

}  // namespace

SessionSize SizeSession(const AttendantCudaConfig& config, const AttendantCudaLimits& limits) {
  const int64_t rows = BucketTokens(limits.max_batch_tokens);
  const int64_t max_len = std::min(limits.max_batch_tokens, config.max_positions);
  return {
      .rows = rows,
      .tokens = limits.max_batch_tokens,
      .sequences = limits.max_batch_sequences,
      .block_bytes = LayOutBatch(rows, limits.max_batch_sequences, config.scales_tokens != 0).bytes,
      // A piece holds at least one sequence's states, or a row of a head's weights.
      .piece_floats = std::max({max_len, max_len * config.hidden, kMinPieceFloats})};
}

DeviceBuffers PlaceDeviceBuffers(const Model& model, const SessionSize& size, Carver& carver) {
  const AttendantCudaConfig& config = model.config();
  const int64_t state_bytes = StateBytes(model.dtype());
  const auto take_states = [&](int64_t width) {
    return carver.Take<std::byte>(size.rows * width * state_bytes);
  };
  DeviceBuffers buffers{};
  buffers.block = carver.Take<std::byte>(size.block_bytes);
  buffers.states = take_states(config.hidden);
  buffers.wide =
      take_states(std::max({QkvWidth(config), FfnInputs(config), config.embedding_width}));
  buffers.context = take_states(ContextWidth(config));
  buffers.update = take_states(config.hidden);
  if (model.dtype() == DType::kFp8) {
    buffers.quantized =
        carver.Take<uint8_t>(size.rows * std::max({config.hidden, ContextWidth(config), config.ffn,
                                                   config.embedding_width}));
    buffers.scales = carver.Take<float>(size.rows);
  } else if (config.gated_ffn != 0) {
    buffers.gated = take_states(config.ffn);
  }
  if (NormsBefore(config)) buffers.residual = carver.Take<float>(size.rows * config.hidden);
  buffers.rows_bytes = carver.used_bytes();
  buffers.last_hidden = carver.Take<float>(size.tokens * config.hidden);
  buffers.pooled = carver.Take<float>(size.sequences * config.hidden);
  buffers.pieces = carver.Take<float>(kOutputSlots * size.piece_floats);
  buffers.workspace = carver.Take<std::byte>(kWorkspaceBytes);
  return buffers;
}

MatmulOperands OperandsOf(const DeviceBuffers& buffers, DType dtype, MatmulKind kind,
                          const DeviceLinear& linear) {
  const std::byte* const x[kNumMatmulKinds] = {
      buffers.states, buffers.context, buffers.states,
      buffers.gated != nullptr ? buffers.gated : buffers.wide, buffers.wide};
  std::byte* const out[kNumMatmulKinds] = {buffers.wide, buffers.update, buffers.wide,
                                           buffers.update, buffers.update};
  const auto index = static_cast<size_t>(kind);
  const bool fp8 = dtype == DType::kFp8;
  return {.x = fp8 ? static_cast<const void*>(buffers.quantized) : x[index],
          .x_scales = buffers.scales,
          .weight = linear.weight,
          .weight_scales = linear.scales,
          .bias = linear.bias,
          .out = out[index]};
}

PinnedBuffers PlacePinnedBuffers(const Model& model, const SessionSize& size, Carver& carver) {
  const int64_t hidden = model.config().hidden;
  PinnedBuffers buffers{};
  buffers.block = carver.Take<std::byte>(size.block_bytes);
  buffers.last_hidden = carver.Take<float>(size.tokens * hidden);
  buffers.pooled = carver.Take<float>(size.sequences * hidden);
  buffers.pieces = carver.Take<float>(kOutputSlots * size.piece_floats);
  return buffers;
}

}  // namespace attendant::cuda
