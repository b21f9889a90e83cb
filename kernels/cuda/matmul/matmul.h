// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <vector>

#include "kernels/cuda/runtime/number_types.h"
#include "kernels/cuda/runtime/status.h"

// Matmuls with a bias, by cuBLASLt: out [rows, outputs] = f(x [rows, inputs] times
// weight [outputs, inputs]^T + bias).
namespace attendant::cuda {

// The matmuls of a layer, and then the projection of embeddings.
enum class MatmulKind : int { kQkv = 0, kAttentionOutput, kFfnUp, kFfnDown, kEmbedding };
inline constexpr int kNumLayerMatmuls = 4;
inline constexpr int kNumMatmulKinds = 5;

enum class Epilogue { kBias, kBiasGeluTanh, kBiasRelu };

struct MatmulShape {
  int64_t outputs = 0;
  int64_t inputs = 0;
  Epilogue epilogue = Epilogue::kBias;
};

// All on the device, aligned to 16 bytes.
struct MatmulOperands {
  const void* x;               // [rows, inputs]
  const float* x_scales;       // [rows]; fp8 only, else null
  const void* weight;          // [outputs, inputs]
  const float* weight_scales;  // [outputs]; fp8 only, else null
  const void* bias;            // [outputs], in the states' format
  void* out;                   // [rows, outputs], in the states' format
};

// The resources of the matmuls of one session. Sessions may share `handle`.
struct MatmulContext {
  cublasLtHandle_t handle;
  DType dtype;
  void* workspace;  // [kWorkspaceBytes] on the device, of this session alone
};
// The workspace that cuBLASLt's manual recommends for 9.0; other devices need less.
inline constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

// Up to `limit` algorithms without split-K for so many rows, the likely fastest first.
// UNIMPLEMENTED when there is none.
Status ListAlgorithms(const MatmulContext& context, const MatmulShape& shape, int64_t rows,
                      int limit, std::vector<cublasLtMatmulAlgo_t>& algorithms);

// accepts = the algorithm can compute `rows` rows within the workspace.
Status Accepts(const MatmulContext& context, const MatmulShape& shape, int64_t rows,
               const cublasLtMatmulAlgo_t& algorithm, bool& accepts);

// Puts the matmul into `stream`.
Status Multiply(const MatmulContext& context, const MatmulShape& shape, const MatmulOperands& args,
                int64_t rows, const cublasLtMatmulAlgo_t& algorithm, cudaStream_t stream);

}  // namespace attendant::cuda
