// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/matmul/algorithm_table.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/runtime/handles.h"

namespace attendant::cuda {

// A linear map's weights on the device.
struct DeviceLinear {
  void* weight = nullptr;   // [outputs, inputs], in the matmuls' format
  float* scales = nullptr;  // [outputs] with fp8, else null: the value is weight * scale
  void* bias = nullptr;     // [outputs], in the states' format
};

struct DeviceNorm {
  float* gamma = nullptr;  // [hidden]
  float* beta = nullptr;   // [hidden]
};

struct DeviceLayer {
  DeviceLinear matmuls[kNumMatmulKinds];  // by MatmulKind; kQkv is [3 * hidden, hidden]
  DeviceNorm attention_norm, ffn_norm;

  const DeviceLinear& matmul(MatmulKind kind) const { return matmuls[static_cast<int>(kind)]; }
};

struct DeviceWeights {
  void* token_embedding = nullptr;     // [vocab, hidden], in the states' format
  void* position_embedding = nullptr;  // [max_positions, hidden]
  void* segment_embedding = nullptr;   // [segment_types, hidden]
  DeviceNorm embedding_norm;
  std::vector<DeviceLayer> layers;
};

// An encoder's weights on one device, shared by the sessions that compute with them. Immutable but
// for the algorithms that sessions find, which have their own lock.
class Model {
 public:
  // Makes the model's device current. See create_model in cuda_interface.h.
  static Status Create(int device, const AttendantCudaConfig& config,
                       const AttendantCudaWeights& weights, DType dtype,
                       std::unique_ptr<Model>& model);

  int device() const { return device_; }
  DType dtype() const { return dtype_; }
  DType states() const { return StateDType(dtype_); }
  const AttendantCudaConfig& config() const { return config_; }
  int64_t head_dim() const { return config_.hidden / config_.heads; }
  const DeviceWeights& weights() const { return weights_; }
  int64_t bytes() const { return bytes_; }
  cublasLtHandle_t cublaslt() const { return cublaslt_.get(); }
  MatmulShape shape(MatmulKind kind) const;
  AlgorithmTable& algorithms() { return algorithms_; }

 private:
  Model(int device, const AttendantCudaConfig& config, DType dtype)
      : device_(device), dtype_(dtype), config_(config) {}
  // Deals out `carver`'s memory, or measures how much the weights take.
  void PlaceWeights(Carver& carver);
  DeviceLinear PlaceLinear(Carver& carver, MatmulKind kind) const;
  DeviceNorm PlaceNorm(Carver& carver) const;
  void* PlaceStates(Carver& carver, int64_t rows) const;  // [rows, hidden]

  int device_;
  DType dtype_;
  AttendantCudaConfig config_;
  DeviceWeights weights_;
  int64_t bytes_ = 0;
  DeviceMemory memory_;
  CublasLt cublaslt_;
  AlgorithmTable algorithms_;
};

// OK, or what of the dimensions or the format this library cannot compute: INVALID_ARGUMENT for
// what makes no sense, UNIMPLEMENTED for what there are no kernels for.
Status CheckConfig(const AttendantCudaConfig& config, DType dtype);

}  // namespace attendant::cuda
