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
      return ATTENDANT_CUDA_SILU;
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

int32_t CudaNormPlace(NormPlace place) {
  switch (place) {
    case NormPlace::kPost:
      return ATTENDANT_CUDA_NORM_POST;
    case NormPlace::kPre:
      return ATTENDANT_CUDA_NORM_PRE;
    case NormPlace::kBoth:
      return ATTENDANT_CUDA_NORM_BOTH;
  }
  return -1;
}

// Null for a tensor that an encoder lacks.
template <int kRank>
const float* DataOrNull(const TensorView<const float, kRank>& tensor) {
  return tensor.empty() ? nullptr : tensor.data();
}

AttendantCudaLinear CudaLinear(const LinearWeights& linear) {
  return {DataOrNull(linear.weight), DataOrNull(linear.bias)};
}

AttendantCudaNorm CudaNorm(const LayerNormWeights& norm) {
  return {DataOrNull(norm.gamma), DataOrNull(norm.beta)};
}

// Tensors that the configuration has no use for stay behind.
AttendantCudaLayer CudaLayer(const EncoderConfig& config, const EncoderLayerWeights& layer,
                             int64_t index) {
  const bool heads = config.query_key_norm == QueryKeyNorm::kHead;
  const bool whole = config.query_key_norm == QueryKeyNorm::kWhole;
  const LayerNormWeights none{};
  return {.query = CudaLinear(layer.query),
          .key = CudaLinear(layer.key),
          .value = CudaLinear(layer.value),
          .attention_output = CudaLinear(layer.attention_output),
          .attention_norm =
              CudaNorm(index > 0 || config.first_attention_norm ? layer.attention_norm : none),
          .ffn_gate = config.gated_ffn ? CudaLinear(layer.ffn_gate) : AttendantCudaLinear{},
          .ffn_up = CudaLinear(layer.ffn_up),
          .ffn_down = CudaLinear(layer.ffn_down),
          .ffn_norm = CudaNorm(layer.ffn_norm),
          .attention_output_norm =
              CudaNorm(config.norms_attention_output() ? layer.attention_output_norm : none),
          .ffn_output_norm = CudaNorm(config.norms_outputs() ? layer.ffn_output_norm : none),
          .query_norm = heads ? layer.query_norm.gamma.data() : nullptr,
          .key_norm = heads ? layer.key_norm.gamma.data() : nullptr,
          .whole_query_norm = CudaNorm(whole ? layer.query_norm : none),
          .whole_key_norm = CudaNorm(whole ? layer.key_norm : none),
          .local = config.is_local(index) ? 1 : 0};
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

CudaWeights::CudaWeights(const EncoderConfig& config, const EncoderWeights& weights)
    : score_by_distance_(ScoresByDistance(config, weights.score_bias)) {
  for (const EncoderLayerWeights& layer : weights.layers) {
    layers_.push_back(CudaLayer(config, layer, static_cast<int64_t>(layers_.size())));
  }
  if (config.positions == Positions::kRotary) {
    rotary_ = RotaryTable(config.rotary, config.max_positions, config.head_dim());
    if (config.local_layers.any()) {
      local_rotary_ = RotaryTable(config.local_rotary, config.max_positions, config.head_dim());
    }
  }
  const bool learned = config.positions == Positions::kLearned;
  const LayerNormWeights none{};
  view_ = {.token_embedding = weights.token_embedding.data(),
           .position_embedding = learned ? weights.position_embedding.data() : nullptr,
           .segment_embedding = weights.segment_embedding.data(),
           .embedding_norm = CudaNorm(config.embedding_norm ? weights.embedding_norm : none),
           .embedding_projection = config.projects_embeddings()
                                       ? CudaLinear(weights.embedding_projection)
                                       : AttendantCudaLinear{},
           .layers = layers_.data(),
           .final_norm = CudaNorm(config.final_norm ? weights.final_norm : none),
           .rotary = rotary_.data(),
           .local_rotary = local_rotary_.data(),
           .score_by_distance = score_by_distance_.empty() ? nullptr : score_by_distance_.data()};
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
          .activation = CudaActivation(config.activation),
          .head_width = config.head_width,
          .kv_heads = config.kv_heads,
          .query_scale = config.query_scale,
          .embedding_scale = config.embedding_scale,
          .norm_place = CudaNormPlace(config.norm_place),
          .rms_norm = config.norm_kind == NormKind::kRms ? 1 : 0,
          .gated_ffn = config.gated_ffn ? 1 : 0,
          .causal = config.causal ? 1 : 0,
          .scales_tokens = config.dropped_token >= 0 ? 1 : 0,
          .window = config.window,
          .embedding_width = config.projects_embeddings() ? config.embedding_width : 0};
}

EncoderConfig ComputedByCuda(const EncoderConfig& config) {
  EncoderConfig computed = config;
  computed.input = EncoderInput::kTokens;
  if (config.score_bias == ScoreBias::kDisentangled) computed.score_bias = ScoreBias::kNone;
  computed.experts = computed.experts_per_token = 0;
  computed.expert_layers.reset();
  return computed;
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
