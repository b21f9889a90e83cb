// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/matmul/algorithm_table.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/model/encoder_shape.h"
#include "kernels/cuda/runtime/handles.h"

namespace attendant::cuda {

// A linear map's weights on the device.
struct DeviceLinear {
  void* weight = nullptr;   // [outputs, inputs], in the matmuls' format
  float* scales = nullptr;  // [outputs] with fp8, else null: the value is weight * scale
  void* bias = nullptr;     // [outputs], in the states' format
};

struct DeviceLayer {
  // Indexed by MatmulKind. kQkv is [qkv_width, hidden]; kFfnUp of a gated network has gate, then
  // up.
  DeviceLinear matmuls[kNumLayerMatmuls];
  NormWeights attention_norm{}, ffn_norm{}, attention_output_norm{}, ffn_output_norm{};
  float* query_norm = nullptr;  // [head_dim]
  float* key_norm = nullptr;    // [head_dim]
  NormWeights whole_query_norm{}, whole_key_norm{};
  bool local = false;

  const DeviceLinear& matmul(MatmulKind kind) const { return matmuls[static_cast<int>(kind)]; }
};

// The first of the layers up to `index` that has its tensors, which is itself where none shares
// them.
int64_t FirstOfSameTensors(const AttendantCudaLayer* layers, int64_t index);

// A tensor that the encoder lacks is null.
struct DeviceWeights {
  void* token_embedding = nullptr;     // [vocab, input_width], in the states' format
  void* position_embedding = nullptr;  // [max_positions, input_width]
  void* segment_embedding = nullptr;   // [segment_types, input_width]
  NormWeights embedding_norm{};
  DeviceLinear embedding_projection{};
  std::vector<DeviceLayer> layers;
  NormWeights final_norm{};
  float* rotary = nullptr;             // [max_positions, head_dim], as local_rotary
  float* local_rotary = nullptr;       // of local layers
  float* score_by_distance = nullptr;  // [heads, 2 * max_positions - 1]
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
  int64_t head_dim() const { return HeadDim(config_); }
  const DeviceWeights& weights() const { return weights_; }
  int64_t bytes() const { return bytes_; }
  cublasLtHandle_t cublaslt() const { return cublaslt_.get(); }
  bool has(MatmulKind kind) const {
    return kind != MatmulKind::kEmbedding || ProjectsEmbeddings(config_);
  }
  MatmulShape shape(MatmulKind kind) const;  // of one that it has
  // The mask of a layer (causal, window), and its relative position bias for `positions` [tokens].
  AttentionRule rule(int64_t layer) const;
  DistanceRule distances(int64_t layer, const int32_t* positions) const;
  AlgorithmTable& algorithms() { return algorithms_; }

 private:
  Model(int device, const AttendantCudaConfig& config, DType dtype)
      : device_(device), dtype_(dtype), config_(config) {}
  // Deals out `carver`'s memory to what there is in `from`, or measures how much the weights take.
  void PlaceWeights(const AttendantCudaWeights& from, Carver& carver);
  void PlaceLayer(const AttendantCudaLayer& from, Carver& carver, DeviceLayer& layer) const;
  DeviceLinear PlaceLinear(Carver& carver, MatmulKind kind) const;
  static NormWeights PlaceNorm(const AttendantCudaNorm& norm, int64_t width, Carver& carver);
  static float* PlaceFloats(const float* from, int64_t count, Carver& carver) {
    return from == nullptr ? nullptr : carver.Take<float>(count);
  }
  void* PlaceEmbeddings(Carver& carver, int64_t rows) const;  // [rows, input_width]

  int64_t DistancesOfHead() const { return 2 * config_.max_positions - 1; }

  int device_;
  DType dtype_;
  AttendantCudaConfig config_;
  DeviceWeights weights_;
  int64_t bytes_ = 0;
  DeviceMemory memory_;
  CublasLt cublaslt_;
  AlgorithmTable algorithms_;
};

}  // namespace attendant::cuda
