// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/model_upload.h"

#include "kernels/cuda/model/encoder_shape.h"
#include "kernels/cuda/model/weight_upload.h"

namespace attendant::cuda {
namespace {

class ModelUpload {
 public:
  explicit ModelUpload(const Model& model) : model_(model), hidden_(model.config().hidden) {}

  Status Run(const AttendantCudaWeights& weights) {
    const AttendantCudaConfig& config = model_.config();
    const DeviceWeights& to = model_.weights();
    ATTENDANT_CUDA_TRY(upload_.Start());
    ATTENDANT_CUDA_TRY(Embeddings(weights, to));
    for (int64_t i = 0; i < config.layers; ++i) {
      if (FirstOfSameTensors(weights.layers, i) < i) continue;
      ATTENDANT_CUDA_TRY(Layer(weights.layers[i], to.layers[static_cast<size_t>(i)]));
    }
    ATTENDANT_CUDA_TRY(Norm(weights.final_norm, hidden_, to.final_norm));
    const int64_t angles = config.max_positions * model_.head_dim();
    ATTENDANT_CUDA_TRY(Floats(weights.rotary, angles, to.rotary));
    ATTENDANT_CUDA_TRY(Floats(weights.local_rotary, angles, to.local_rotary));
    ATTENDANT_CUDA_TRY(Floats(weights.score_by_distance,
                              config.heads * (2 * config.max_positions - 1), to.score_by_distance));
    return upload_.Finish();
  }

 private:
  Status States(const float* values, int64_t count, void* to) {
    return upload_.States(model_.dtype(), values, count, to);
  }
  // Does nothing where the model has no room for the values: `to` is null.
  Status Floats(const float* values, int64_t count, float* to) {
    return to == nullptr ? Status() : upload_.States(DType::kF32, values, count, to);
  }
  Status Norm(const AttendantCudaNorm& norm, int64_t width, const NormWeights& to) {
    ATTENDANT_CUDA_TRY(Floats(norm.gamma, width, const_cast<float*>(to.gamma)));
    return Floats(norm.beta, width, const_cast<float*>(to.beta));
  }
  Status Embeddings(const AttendantCudaWeights& from, const DeviceWeights& to) {
    const AttendantCudaConfig& config = model_.config();
    const int64_t width = InputWidth(config);
    ATTENDANT_CUDA_TRY(States(from.token_embedding, config.vocab * width, to.token_embedding));
    if (to.position_embedding != nullptr) {
      ATTENDANT_CUDA_TRY(
          States(from.position_embedding, config.max_positions * width, to.position_embedding));
    }
    ATTENDANT_CUDA_TRY(
        States(from.segment_embedding, config.segment_types * width, to.segment_embedding));
    ATTENDANT_CUDA_TRY(Norm(from.embedding_norm, width, to.embedding_norm));
    if (!ProjectsEmbeddings(config)) return {};
    return Linear(from.embedding_projection, 0, hidden_, width, to.embedding_projection);
  }
  // As rows [first, first + outputs) of the device's.
  Status Linear(const AttendantCudaLinear& linear, int64_t first, int64_t outputs, int64_t inputs,
                const DeviceLinear& to) {
    const int64_t value_bytes = StateBytes(model_.dtype());
    ATTENDANT_CUDA_TRY(
        States(linear.bias, outputs, static_cast<std::byte*>(to.bias) + first * value_bytes));
    auto* weight = static_cast<std::byte*>(to.weight);
    if (model_.dtype() == DType::kFp8) {
      return upload_.Quantized(linear.weight, outputs, inputs, weight + first * inputs,
                               to.scales + first);
    }
    return States(linear.weight, outputs * inputs, weight + first * inputs * value_bytes);
  }
  Status Layer(const AttendantCudaLayer& layer, const DeviceLayer& to) {
    const AttendantCudaConfig& config = model_.config();
    const int64_t ffn = config.ffn, context = ContextWidth(config), keys = KeyWidth(config);
    const DeviceLinear& qkv = to.matmul(MatmulKind::kQkv);
    ATTENDANT_CUDA_TRY(Linear(layer.query, 0, context, hidden_, qkv));
    ATTENDANT_CUDA_TRY(Linear(layer.key, context, keys, hidden_, qkv));
    ATTENDANT_CUDA_TRY(Linear(layer.value, context + keys, keys, hidden_, qkv));
    ATTENDANT_CUDA_TRY(Linear(layer.attention_output, 0, hidden_, context,
                              to.matmul(MatmulKind::kAttentionOutput)));
    const DeviceLinear& up = to.matmul(MatmulKind::kFfnUp);
    const int64_t gate = FfnInputs(config) - ffn;  // rows in front of `up`
    if (gate > 0) ATTENDANT_CUDA_TRY(Linear(layer.ffn_gate, 0, gate, hidden_, up));
    ATTENDANT_CUDA_TRY(Linear(layer.ffn_up, gate, ffn, hidden_, up));
    ATTENDANT_CUDA_TRY(Linear(layer.ffn_down, 0, hidden_, ffn, to.matmul(MatmulKind::kFfnDown)));
    ATTENDANT_CUDA_TRY(Norm(layer.attention_norm, hidden_, to.attention_norm));
    ATTENDANT_CUDA_TRY(Norm(layer.ffn_norm, hidden_, to.ffn_norm));
    ATTENDANT_CUDA_TRY(Norm(layer.attention_output_norm, hidden_, to.attention_output_norm));
    ATTENDANT_CUDA_TRY(Norm(layer.ffn_output_norm, hidden_, to.ffn_output_norm));
    ATTENDANT_CUDA_TRY(Norm(layer.whole_query_norm, context, to.whole_query_norm));
    ATTENDANT_CUDA_TRY(Norm(layer.whole_key_norm, keys, to.whole_key_norm));
    ATTENDANT_CUDA_TRY(Floats(layer.query_norm, model_.head_dim(), to.query_norm));
    return Floats(layer.key_norm, model_.head_dim(), to.key_norm);
  }

  const Model& model_;
  int64_t hidden_;
  WeightUpload upload_;
};

}  // namespace

Status UploadWeights(const Model& model, const AttendantCudaWeights& weights) {
  return ModelUpload(model).Run(weights);
}

}  // namespace attendant::cuda
