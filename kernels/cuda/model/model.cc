// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/model.h"

#include <cstddef>
#include <cstring>

#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/model/model_check.h"
#include "kernels/cuda/model/model_upload.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/number_types.h"

namespace attendant::cuda {
namespace {

// A wide head needs more shared memory than some devices give a block.
Status PrepareHeads(const AttendantCudaConfig& config, DType dtype) {
  const cudaError_t error = PrepareAttention(dtype, HeadDim(config));
  if (error != cudaErrorInvalidValue) return Check(error, "preparing attention");
  cudaGetLastError();  // the next call would report it again
  return Status::Error(ATTENDANT_CUDA_UNIMPLEMENTED,
                       "attention with a head_dim of %lld in %s needs more shared memory than this "
                       "device has",
                       static_cast<long long>(HeadDim(config)), DTypeName(dtype));
}

}  // namespace

int64_t FirstOfSameTensors(const AttendantCudaLayer* layers, int64_t index) {
  constexpr size_t kPointers = offsetof(AttendantCudaLayer, local);
  int64_t first = 0;
  while (first < index && std::memcmp(&layers[first], &layers[index], kPointers) != 0) ++first;
  return first;
}

Status Model::Create(int device, const AttendantCudaConfig& config,
                     const AttendantCudaWeights& weights, DType dtype,
                     std::unique_ptr<Model>& model) {
  ATTENDANT_CUDA_TRY(CheckConfig(config, dtype));
  ATTENDANT_CUDA_TRY(CheckTensors(config, weights));
  ATTENDANT_CUDA_TRY(CheckDType(device, dtype));
  ATTENDANT_CUDA_TRY(UseDevice(device));
  ATTENDANT_CUDA_TRY(PrepareHeads(config, dtype));

  std::unique_ptr<Model> made(new Model(device, config, dtype));
  made->weights_.layers.resize(static_cast<size_t>(config.layers));
  Carver measure;
  made->PlaceWeights(weights, measure);
  made->bytes_ = measure.used_bytes();
  ATTENDANT_CUDA_TRY(AllocateDevice(made->bytes_, made->memory_));
  Carver carver(made->memory_.get());
  made->PlaceWeights(weights, carver);
  ATTENDANT_CUDA_TRY(UploadWeights(*made, weights));
  ATTENDANT_CUDA_TRY(MakeCublasLt(made->cublaslt_));
  model = std::move(made);
  return {};
}

MatmulShape Model::shape(MatmulKind kind) const {
  switch (kind) {
    case MatmulKind::kQkv:
      return {.outputs = QkvWidth(config_), .inputs = config_.hidden};
    case MatmulKind::kAttentionOutput:
      return {.outputs = config_.hidden, .inputs = ContextWidth(config_)};
    case MatmulKind::kFfnDown:
      return {.outputs = config_.hidden, .inputs = config_.ffn};
    case MatmulKind::kEmbedding:
      return {.outputs = config_.hidden, .inputs = config_.embedding_width};
    case MatmulKind::kFfnUp:
      break;
  }
  // cuBLASLt's GELU is the tanh form; fp8's results pass through an activation kernel anyway.
  Epilogue epilogue = Epilogue::kBias;
  const bool activates = dtype_ != DType::kFp8 && config_.gated_ffn == 0;
  if (activates && config_.activation == ATTENDANT_CUDA_GELU_TANH) {
    epilogue = Epilogue::kBiasGeluTanh;
  } else if (activates && config_.activation == ATTENDANT_CUDA_RELU) {
    epilogue = Epilogue::kBiasRelu;
  }
  return {.outputs = FfnInputs(config_), .inputs = config_.hidden, .epilogue = epilogue};
}

void* Model::PlaceEmbeddings(Carver& carver, int64_t rows) const {
  return carver.Take<std::byte>(rows * InputWidth(config_) * StateBytes(dtype_));
}

NormWeights Model::PlaceNorm(const AttendantCudaNorm& norm, int64_t width, Carver& carver) {
  if (norm.gamma == nullptr) return {};
  float* gamma = carver.Take<float>(width);
  return {.gamma = gamma, .beta = carver.Take<float>(width)};
}

DeviceLinear Model::PlaceLinear(Carver& carver, MatmulKind kind) const {
  const MatmulShape size = shape(kind);
  const int64_t state_bytes = StateBytes(dtype_);
  const bool fp8 = dtype_ == DType::kFp8;
  DeviceLinear linear;
  linear.weight = carver.Take<std::byte>(size.outputs * size.inputs * (fp8 ? 1 : state_bytes));
  if (fp8) linear.scales = carver.Take<float>(size.outputs);
  linear.bias = carver.Take<std::byte>(size.outputs * state_bytes);
  return linear;
}

void Model::PlaceLayer(const AttendantCudaLayer& from, Carver& carver, DeviceLayer& layer) const {
  for (int kind = 0; kind < kNumLayerMatmuls; ++kind) {
    layer.matmuls[kind] = PlaceLinear(carver, static_cast<MatmulKind>(kind));
  }
  const int64_t hidden = config_.hidden;
  layer.attention_norm = PlaceNorm(from.attention_norm, hidden, carver);
  layer.ffn_norm = PlaceNorm(from.ffn_norm, hidden, carver);
  layer.attention_output_norm = PlaceNorm(from.attention_output_norm, hidden, carver);
  layer.ffn_output_norm = PlaceNorm(from.ffn_output_norm, hidden, carver);
  layer.query_norm = PlaceFloats(from.query_norm, head_dim(), carver);
  layer.key_norm = PlaceFloats(from.key_norm, head_dim(), carver);
  layer.whole_query_norm = PlaceNorm(from.whole_query_norm, ContextWidth(config_), carver);
  layer.whole_key_norm = PlaceNorm(from.whole_key_norm, KeyWidth(config_), carver);
}

void Model::PlaceWeights(const AttendantCudaWeights& from, Carver& carver) {
  weights_.token_embedding = PlaceEmbeddings(carver, config_.vocab);
  if (from.position_embedding != nullptr) {
    weights_.position_embedding = PlaceEmbeddings(carver, config_.max_positions);
  }
  weights_.segment_embedding = PlaceEmbeddings(carver, config_.segment_types);
  weights_.embedding_norm = PlaceNorm(from.embedding_norm, InputWidth(config_), carver);
  if (has(MatmulKind::kEmbedding)) {
    weights_.embedding_projection = PlaceLinear(carver, MatmulKind::kEmbedding);
  }
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    DeviceLayer& layer = weights_.layers[i];
    const auto first =
        static_cast<size_t>(FirstOfSameTensors(from.layers, static_cast<int64_t>(i)));
    if (first < i) {
      layer = weights_.layers[first];
    } else {
      PlaceLayer(from.layers[i], carver, layer);
    }
    layer.local = from.layers[i].local != 0;
  }
  weights_.final_norm = PlaceNorm(from.final_norm, config_.hidden, carver);
  const int64_t angles = config_.max_positions * head_dim();
  weights_.rotary = PlaceFloats(from.rotary, angles, carver);
  weights_.local_rotary = PlaceFloats(from.local_rotary, angles, carver);
  weights_.score_by_distance =
      PlaceFloats(from.score_by_distance, config_.heads * DistancesOfHead(), carver);
}

AttentionRule Model::rule(int64_t layer) const {
  AttentionRule rule;
  if (weights_.layers[static_cast<size_t>(layer)].local) {
    rule.keys_before = rule.keys_after = static_cast<int32_t>(config_.window);
  }
  if (config_.causal != 0) rule.keys_after = 0;
  return rule;
}

DistanceRule Model::distances(int64_t layer, const int32_t* positions) const {
  if (weights_.score_by_distance != nullptr) {
    return {.positions = positions,
            .scores = weights_.score_by_distance + config_.max_positions - 1,
            .stride = DistancesOfHead()};
  }
  if (!weights_.layers[static_cast<size_t>(layer)].local) return {};
  return {.positions = positions};
}

}  // namespace attendant::cuda
