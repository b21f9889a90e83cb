// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "kernels/cuda/engine/session_buffers.h"
#include "kernels/cuda/model/model.h"

namespace attendant::cuda {

// The algorithm of each matmul that the model has, by class of rows (batch_layout.h):
// [class][MatmulKind].
using Algorithms = std::vector<std::array<cublasLtMatmulAlgo_t, kNumMatmulKinds>>;

// Chooses the algorithms for up to `rows` rows, by time, among those that give a row the same bits
// however many rows there are and whichever of them computes it: batch invariance rests on it. Of
// what other sessions of the model have found it takes what is there. Overwrites the buffers.
// UNIMPLEMENTED when cuBLASLt has no algorithm that keeps a row's bits.
Status ChooseAlgorithms(Model& model, const MatmulContext& context, const DeviceBuffers& buffers,
                        int64_t rows, cudaStream_t stream, Algorithms& algorithms);

}  // namespace attendant::cuda
