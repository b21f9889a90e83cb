// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/model/model.h"
#include "kernels/cuda/runtime/handles.h"

namespace attendant::cuda {

// The size of the largest batch that a session's memory holds; `rows` is its bucket.
struct SessionSize {
  int64_t rows = 0;
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t block_bytes = 0;   // of the largest batch's block (batch_layout.h)
  int64_t piece_floats = 0;  // of one of kOutputSlots (output_pipe.h)
};
SessionSize SizeSession(const AttendantCudaConfig& config, const AttendantCudaLimits& limits);

inline constexpr int kOutputSlots = 2;

// The device memory of a session.
struct DeviceBuffers {
  std::byte* block;      // [block_bytes]: the batch
  std::byte* states;     // [rows, hidden] in the states' format, as all down to `update`
  std::byte* wide;       // [rows, qkv_width] q, k and v, later [rows, ffn], or gate and up; before
                         // all layers [rows, embedding_width] where that is projected
  std::byte* context;    // [rows, context_width]
  std::byte* update;     // [rows, hidden]
  std::byte* gated;      // [rows, ffn] of a gated network without fp8, else null
  uint8_t* quantized;    // [rows, the widest operand] e4m3 with fp8, else null
  float* scales;         // [rows] with fp8, else null
  float* residual;       // [rows, hidden] where norms come before branches, else null
  int64_t rows_bytes;    // of all above: what matmuls read beyond a batch's rows
  float* last_hidden;    // [tokens, hidden]
  float* pooled;         // [sequences, hidden]
  float* pieces;         // [kOutputSlots, piece_floats]
  std::byte* workspace;  // [kWorkspaceBytes]
};
DeviceBuffers PlaceDeviceBuffers(const Model& model, const SessionSize& size, Carver& carver);

// A matmul's operands and result in a session's buffers, with one layer's weights. A matmul
// reads the output of the step before it.
MatmulOperands OperandsOf(const DeviceBuffers& buffers, DType dtype, MatmulKind kind,
                          const DeviceLinear& linear);

// The buffers on the host's side whose contents travel.
struct PinnedBuffers {
  std::byte* block;
  float* last_hidden;
  float* pooled;
  float* pieces;
};
PinnedBuffers PlacePinnedBuffers(const Model& model, const SessionSize& size, Carver& carver);

}  // namespace attendant::cuda
