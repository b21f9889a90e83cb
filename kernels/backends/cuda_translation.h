// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/base/position_tables.h"
#include "kernels/core/dtype.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/core/outputs.h"
#include "kernels/cuda/cuda_interface.h"

// Types of kernels/core as types of the CUDA library's interface. Results point into the arguments.
namespace attendant {

int32_t CudaDType(DType dtype);  // -1 for int8, which it does not have
AttendantCudaConfig CudaConfig(const EncoderConfig& config);
// The encoder that the library computes for `config`: input of tokens, and no disentangled scores.
EncoderConfig ComputedByCuda(const EncoderConfig& config);

// An encoder's tensors and the tables that follow from its configuration, which are made here.
class CudaWeights {
 public:
  // Points into `weights`.
  CudaWeights(const EncoderConfig& config, const EncoderWeights& weights);
  CudaWeights(const CudaWeights&) = delete;
  CudaWeights& operator=(const CudaWeights&) = delete;

  const AttendantCudaWeights& view() const { return view_; }

 private:
  std::vector<AttendantCudaLayer> layers_;
  RotaryTable rotary_, local_rotary_;
  std::vector<float> score_by_distance_;
  AttendantCudaWeights view_{};
};

AttendantCudaSequenceOutputs CudaSequenceOutputs(const SequenceOutputs& wanted);
AttendantCudaLayerOutputs CudaLayerOutputs(const LayerOutputs& wanted);

}  // namespace attendant
