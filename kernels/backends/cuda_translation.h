// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/dtype.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/core/outputs.h"
#include "kernels/cuda/cuda_interface.h"

// Types of kernels/core as types of the CUDA library's interface. Results point into the arguments.
namespace attendant {

int32_t CudaDType(DType dtype);  // -1 for int8, which it does not have
AttendantCudaConfig CudaConfig(const EncoderConfig& config);
// The encoder that the library computes for `config`: switches that it does not have are BERT's.
EncoderConfig ComputedByCuda(const EncoderConfig& config);
AttendantCudaNorm CudaNorm(const LayerNormWeights& norm);
std::vector<AttendantCudaLayer> CudaLayers(const EncoderWeights& weights);
AttendantCudaSequenceOutputs CudaSequenceOutputs(const SequenceOutputs& wanted);
AttendantCudaLayerOutputs CudaLayerOutputs(const LayerOutputs& wanted);

}  // namespace attendant
