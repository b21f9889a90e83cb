// SPDX-License-Identifier: Apache-2.0
#include "kernels/backends/cuda_translation.h"

namespace attendant {
namespace {

int32_t CudaActivation(Activation activation) {
  switch (activation) {
    case Activation::kGeluErf:
      return ATTENDANT_CUDA_GELU_ERF;
    case Activation::kGeluTanh:
      return ATTENDANT_CUDA_GELU_TANH;
    case Activation::kRelu:
      return ATTENDANT_CUDA_RELU;
    case Activation::kSilu:
      break;
  }
  return -1;
}

int32_t CudaPooling(Pooling pooling) {
  switch (pooling) {
    case Pooling::kNone:
      return ATTENDANT_CUDA_POOL_NONE;
    case Pooling::kMean:
      return ATTENDANT_CUDA_POOL_MEAN;
    case Pooling::kCls:
      return ATTENDANT_CUDA_POOL_CLS;
    case Pooling::kMax:
      return ATTENDANT_CUDA_POOL_MAX;
    case Pooling::kLast:
      return ATTENDANT_CUDA_POOL_LAST;
    case Pooling::kMeanSqrtLen:
    case Pooling::kWeightedMean:
      break;  // no back end computes these
  }
  return -1;
}

AttendantCudaLinear CudaLinear(const LinearWeights& linear) {
  return {linear.weight.data(), linear.bias.data()};
}

}  // namespace

int32_t CudaDType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ATTENDANT_CUDA_F32;
    case DType::kBf16:
      return ATTENDANT_CUDA_BF16;
    case DType::kF16:
      return ATTENDANT_CUDA_F16;
    case DType::kFp8:
      return ATTENDANT_CUDA_FP8;
    case DType::kInt8:
      break;
  }
  return -1;
}

AttendantCudaNorm CudaNorm(const LayerNormWeights& norm) {
  return {norm.gamma.data(), norm.beta.data()};
}

std::vector<AttendantCudaLayer> CudaLayers(const EncoderWeights& weights) {
  std::vector<AttendantCudaLayer> layers;
  for (const EncoderLayerWeights& layer : weights.layers) {
    layers.push_back({.query = CudaLinear(layer.query),
                      .key = CudaLinear(layer.key),
                      .value = CudaLinear(layer.value),
                      .attention_output = CudaLinear(layer.attention_output),
                      .attention_norm = CudaNorm(layer.attention_norm),
                      .ffn_up = CudaLinear(layer.ffn_up),
                      .ffn_down = CudaLinear(layer.ffn_down),
                      .ffn_norm = CudaNorm(layer.ffn_norm)});
  }
  return layers;
}

AttendantCudaConfig CudaConfig(const EncoderConfig& config) {
  return {.layers = config.layers,
          .heads = config.heads,
          .hidden = config.hidden,
          .ffn = config.ffn,
          .vocab = config.vocab,
          .max_positions = config.max_positions,
          .segment_types = config.segment_types,
          .layer_norm_epsilon = config.layer_norm_epsilon,
          .activation = CudaActivation(config.activation)};
}

EncoderConfig ComputedByCuda(const EncoderConfig& config) {
  return {.layers = config.layers,
          .heads = config.heads,
          .hidden = config.hidden,
          .ffn = config.ffn,
          .vocab = config.vocab,
          .max_positions = config.max_positions,
          .segment_types = config.segment_types,
          .layer_norm_epsilon = config.layer_norm_epsilon,
          .activation =
              CudaActivation(config.activation) < 0 ? Activation::kGeluErf : config.activation};
}

AttendantCudaSequenceOutputs CudaSequenceOutputs(const SequenceOutputs& wanted) {
  return {.last_hidden_state = wanted.last_hidden_state ? 1 : 0,
          .pooling = CudaPooling(wanted.pooling),
          .normalize = wanted.normalize ? 1 : 0,
          .dims = wanted.dims};
}

AttendantCudaLayerOutputs CudaLayerOutputs(const LayerOutputs& wanted) {
  return {.attention_layers = wanted.attention_layers.data(),
          .num_attention_layers = static_cast<int64_t>(wanted.attention_layers.size()),
          .attention_heads = wanted.attention_heads.data(),
          .num_attention_heads = static_cast<int64_t>(wanted.attention_heads.size()),
          .attention_weights = wanted.attention_weights,
          .hidden_layers = wanted.hidden_layers.data(),
          .num_hidden_layers = static_cast<int64_t>(wanted.hidden_layers.size()),
          .hidden_states = wanted.hidden_states,
          .attention_queries = wanted.attention_queries};
}

}  // namespace attendant
