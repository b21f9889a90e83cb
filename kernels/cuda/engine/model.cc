// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/model.h"

#include <cmath>

#include "kernels/cuda/engine/weight_upload.h"
#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/number_types.h"

namespace attendant::cuda {
namespace {

// Of the kernels that hold a row in registers (kernels.h).
constexpr int64_t kMaxHidden = 8192;

struct NamedCount {
  const char* name;
  int64_t count;
};

bool HasAll(const AttendantCudaLinear& linear) {
  return linear.weight != nullptr && linear.bias != nullptr;
}
bool HasAll(const AttendantCudaNorm& norm) { return norm.gamma != nullptr && norm.beta != nullptr; }

bool HasAll(const AttendantCudaConfig& config, const AttendantCudaWeights& weights) {
  if (weights.token_embedding == nullptr || weights.position_embedding == nullptr ||
      weights.segment_embedding == nullptr || !HasAll(weights.embedding_norm) ||
      weights.layers == nullptr) {
    return false;
  }
  for (int64_t i = 0; i < config.layers; ++i) {
    const AttendantCudaLayer& layer = weights.layers[i];
    if (!HasAll(layer.query) || !HasAll(layer.key) || !HasAll(layer.value) ||
        !HasAll(layer.attention_output) || !HasAll(layer.attention_norm) || !HasAll(layer.ffn_up) ||
        !HasAll(layer.ffn_down) || !HasAll(layer.ffn_norm)) {
      return false;
    }
  }
  return true;
}

// Sends weights to where a model has placed them.
class ModelUpload {
 public:
  explicit ModelUpload(const Model& model) : model_(model), hidden_(model.config().hidden) {}

  Status Run(const AttendantCudaWeights& weights) {
    const AttendantCudaConfig& config = model_.config();
    const DeviceWeights& to = model_.weights();
    ATTENDANT_CUDA_TRY(upload_.Start());
    ATTENDANT_CUDA_TRY(States(weights.token_embedding, config.vocab * hidden_, to.token_embedding));
    ATTENDANT_CUDA_TRY(
        States(weights.position_embedding, config.max_positions * hidden_, to.position_embedding));
    ATTENDANT_CUDA_TRY(
        States(weights.segment_embedding, config.segment_types * hidden_, to.segment_embedding));
    ATTENDANT_CUDA_TRY(Norm(weights.embedding_norm, to.embedding_norm));
    for (int64_t i = 0; i < config.layers; ++i) {
      ATTENDANT_CUDA_TRY(Layer(weights.layers[i], to.layers[static_cast<size_t>(i)]));
    }
    return upload_.Finish();
  }

 private:
  Status States(const float* values, int64_t count, void* to) {
    return upload_.States(model_.dtype(), values, count, to);
  }
  Status Norm(const AttendantCudaNorm& norm, const DeviceNorm& to) {
    ATTENDANT_CUDA_TRY(upload_.States(DType::kF32, norm.gamma, hidden_, to.gamma));
    return upload_.States(DType::kF32, norm.beta, hidden_, to.beta);
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
    const int64_t ffn = model_.config().ffn;
    const DeviceLinear& qkv = to.matmul(MatmulKind::kQkv);
    ATTENDANT_CUDA_TRY(Linear(layer.query, 0, hidden_, hidden_, qkv));
    ATTENDANT_CUDA_TRY(Linear(layer.key, hidden_, hidden_, hidden_, qkv));
    ATTENDANT_CUDA_TRY(Linear(layer.value, 2 * hidden_, hidden_, hidden_, qkv));
    ATTENDANT_CUDA_TRY(Linear(layer.attention_output, 0, hidden_, hidden_,
                              to.matmul(MatmulKind::kAttentionOutput)));
    ATTENDANT_CUDA_TRY(Norm(layer.attention_norm, to.attention_norm));
    ATTENDANT_CUDA_TRY(Linear(layer.ffn_up, 0, ffn, hidden_, to.matmul(MatmulKind::kFfnUp)));
    ATTENDANT_CUDA_TRY(Linear(layer.ffn_down, 0, hidden_, ffn, to.matmul(MatmulKind::kFfnDown)));
    return Norm(layer.ffn_norm, to.ffn_norm);
  }

  const Model& model_;
  int64_t hidden_;
  WeightUpload upload_;
};

}  // namespace

Status CheckConfig(const AttendantCudaConfig& config, DType dtype) {
  for (const NamedCount& one :
       {NamedCount{"layers", config.layers}, NamedCount{"heads", config.heads},
        NamedCount{"hidden", config.hidden}, NamedCount{"ffn", config.ffn},
        NamedCount{"vocab", config.vocab}, NamedCount{"max_positions", config.max_positions},
        NamedCount{"segment_types", config.segment_types}}) {
    if (one.count <= 0 || one.count > INT32_MAX) {
      return Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT, "%s is %lld", one.name,
                           static_cast<long long>(one.count));
    }
  }
  const auto hidden = static_cast<long long>(config.hidden);
  const auto heads = static_cast<long long>(config.heads);
  if (hidden % heads != 0 || !(config.layer_norm_epsilon > 0) ||
      config.activation < ATTENDANT_CUDA_GELU_ERF || config.activation > ATTENDANT_CUDA_RELU) {
    return Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT,
                         "hidden %lld, heads %lld, layer_norm_epsilon %g and activation %d do not "
                         "make an encoder",
                         hidden, heads, static_cast<double>(config.layer_norm_epsilon),
                         static_cast<int>(config.activation));
  }
  // Rows are read 16 bytes at a time, and that is also what cuBLASLt wants of them.
  const int64_t multiple = dtype == DType::kFp8 ? 16 : 8;
  if (hidden % multiple != 0 || hidden > kMaxHidden || config.ffn % multiple != 0) {
    return Status::Error(
        ATTENDANT_CUDA_UNIMPLEMENTED,
        "hidden %lld and ffn %lld must be multiples of %lld on a GPU in %s, hidden "
        "at most %lld",
        hidden, static_cast<long long>(config.ffn), static_cast<long long>(multiple),
        DTypeName(dtype), static_cast<long long>(kMaxHidden));
  }
  if (!HasAttention(StateDType(dtype), hidden / heads)) {
    return Status::Error(ATTENDANT_CUDA_UNIMPLEMENTED,
                         "attention has no kernel for head_dim %lld in this format",
                         hidden / heads);
  }
  return {};
}

Status Model::Create(int device, const AttendantCudaConfig& config,
                     const AttendantCudaWeights& weights, DType dtype,
                     std::unique_ptr<Model>& model) {
  ATTENDANT_CUDA_TRY(CheckConfig(config, dtype));
  if (!HasAll(config, weights)) {
    return Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT, "a tensor is null");
  }
  ATTENDANT_CUDA_TRY(CheckDType(device, dtype));
  ATTENDANT_CUDA_TRY(UseDevice(device));

  std::unique_ptr<Model> made(new Model(device, config, dtype));
  made->weights_.layers.resize(static_cast<size_t>(config.layers));
  Carver measure;
  made->PlaceWeights(measure);
  made->bytes_ = measure.used_bytes();
  ATTENDANT_CUDA_TRY(AllocateDevice(made->bytes_, made->memory_));
  Carver carver(made->memory_.get());
  made->PlaceWeights(carver);
  ATTENDANT_CUDA_TRY(ModelUpload(*made).Run(weights));
  ATTENDANT_CUDA_TRY(MakeCublasLt(made->cublaslt_));
  ATTENDANT_CUDA_TRY(Check(PrepareAttention(dtype, made->head_dim()), "preparing attention"));
  model = std::move(made);
  return {};
}

MatmulShape Model::shape(MatmulKind kind) const {
  switch (kind) {
    case MatmulKind::kQkv:
      return {.outputs = 3 * config_.hidden, .inputs = config_.hidden};
    case MatmulKind::kAttentionOutput:
      return {.outputs = config_.hidden, .inputs = config_.hidden};
    case MatmulKind::kFfnDown:
      return {.outputs = config_.hidden, .inputs = config_.ffn};
    case MatmulKind::kFfnUp:
      break;
  }
  // cuBLASLt's GELU is the tanh form; fp8's results pass through an activation kernel anyway.
  Epilogue epilogue = Epilogue::kBias;
  if (dtype_ != DType::kFp8 && config_.activation == ATTENDANT_CUDA_GELU_TANH) {
    epilogue = Epilogue::kBiasGeluTanh;
  } else if (dtype_ != DType::kFp8 && config_.activation == ATTENDANT_CUDA_RELU) {
    epilogue = Epilogue::kBiasRelu;
  }
  return {.outputs = config_.ffn, .inputs = config_.hidden, .epilogue = epilogue};
}

void* Model::PlaceStates(Carver& carver, int64_t rows) const {
  return carver.Take<std::byte>(rows * config_.hidden * StateBytes(dtype_));
}

DeviceNorm Model::PlaceNorm(Carver& carver) const {
  float* gamma = carver.Take<float>(config_.hidden);
  return {.gamma = gamma, .beta = carver.Take<float>(config_.hidden)};
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

void Model::PlaceWeights(Carver& carver) {
  weights_.token_embedding = PlaceStates(carver, config_.vocab);
  weights_.position_embedding = PlaceStates(carver, config_.max_positions);
  weights_.segment_embedding = PlaceStates(carver, config_.segment_types);
  weights_.embedding_norm = PlaceNorm(carver);
  for (DeviceLayer& layer : weights_.layers) {
    for (int kind = 0; kind < kNumMatmulKinds; ++kind) {
      layer.matmuls[kind] = PlaceLinear(carver, static_cast<MatmulKind>(kind));
    }
    layer.attention_norm = PlaceNorm(carver);
    layer.ffn_norm = PlaceNorm(carver);
  }
}

}  // namespace attendant::cuda
