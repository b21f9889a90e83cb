// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/encoder_pass.h"

#include <cmath>

#include "kernels/cuda/engine/batch_layout.h"
#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/runtime/handles.h"

namespace attendant::cuda {
namespace {

Activation ActivationOf(int32_t activation) {
  switch (activation) {
    case ATTENDANT_CUDA_GELU_TANH:
      return Activation::kGeluTanh;
    case ATTENDANT_CUDA_RELU:
      return Activation::kRelu;
    default:
      return Activation::kGeluErf;
  }
}

}  // namespace

struct EncoderPass::Run {
  PassSize size;
  BatchLayout layout;
  const std::byte* block;
  cudaStream_t stream;
  PassObserver* observer;

  const BatchCounts* counts() const {
    return reinterpret_cast<const BatchCounts*>(block + layout.counts);
  }
  template <typename T>
  const T* at(int64_t offset) const {
    return reinterpret_cast<const T*>(block + offset);
  }
  // A launch that was work of `group`.
  Status Done(cudaError_t launched, const char* what, int group) const {
    ATTENDANT_CUDA_TRY(Check(launched, what));
    return observer == nullptr ? Status() : observer->AfterGroup(group);
  }
};

EncoderPass::EncoderPass(const Model& model, const DeviceBuffers& buffers,
                         const Algorithms& algorithms, int64_t max_sequences)
    : model_(model),
      buffers_(buffers),
      algorithms_(algorithms),
      max_sequences_(max_sequences),
      states_(model.states()),
      matmul_context_{model.cublaslt(), model.dtype(), buffers.workspace} {}

Status EncoderPass::Issue(const PassSize& size, cudaStream_t stream, PassObserver* observer) const {
  const Run run{.size = size,
                .layout = LayOutBatch(size.rows, max_sequences_),
                .block = buffers_.block,
                .stream = stream,
                .observer = observer};
  ATTENDANT_CUDA_TRY(Embed(run));
  for (int64_t layer = 0; layer < model_.config().layers; ++layer) {
    ATTENDANT_CUDA_TRY(Layer(run, layer));
  }
  return Pool(run);
}

// states = LayerNorm(token + position + segment)
Status EncoderPass::Embed(const Run& run) const {
  const DeviceWeights& weights = model_.weights();
  const EmbedArgs args{.token_ids = run.at<int32_t>(run.layout.token_ids),
                       .positions = run.at<int32_t>(run.layout.positions),
                       .segment_ids = run.at<int32_t>(run.layout.segment_ids),
                       .token_embedding = weights.token_embedding,
                       .position_embedding = weights.position_embedding,
                       .segment_embedding = weights.segment_embedding,
                       .gamma = weights.embedding_norm.gamma,
                       .beta = weights.embedding_norm.beta,
                       .epsilon = model_.config().layer_norm_epsilon,
                       .states = buffers_.states,
                       .quantized = buffers_.quantized,
                       .scales = buffers_.scales};
  ATTENDANT_CUDA_TRY(run.Done(
      LaunchEmbed(states_, args, run.counts(), run.size.tokens, model_.config().hidden, run.stream),
      "embedding", ATTENDANT_CUDA_GROUP_EMBED));
  return run.observer == nullptr ? Status() : run.observer->AfterLayer(0);
}

Status EncoderPass::Layer(const Run& run, int64_t layer) const {
  const ProfilerRange range("attendant: launch a layer");
  const DeviceLayer& weights = model_.weights().layers[static_cast<size_t>(layer)];
  ATTENDANT_CUDA_TRY(Linear(run, weights, MatmulKind::kQkv));
  if (run.observer != nullptr) ATTENDANT_CUDA_TRY(run.observer->AfterQkv(layer));
  ATTENDANT_CUDA_TRY(Attend(run));
  ATTENDANT_CUDA_TRY(Linear(run, weights, MatmulKind::kAttentionOutput));
  ATTENDANT_CUDA_TRY(Norm(run, weights.attention_norm));
  ATTENDANT_CUDA_TRY(FeedForward(run, weights));
  ATTENDANT_CUDA_TRY(Norm(run, weights.ffn_norm));
  return run.observer == nullptr ? Status() : run.observer->AfterLayer(layer + 1);
}

// context = softmax(q k^T / sqrt(head_dim)) v
Status EncoderPass::Attend(const Run& run) const {
  const int64_t hidden = model_.config().hidden;
  const int64_t part_bytes = hidden * StateBytes(states_);
  const AttentionArgs args{.q = buffers_.wide,
                           .k = buffers_.wide + part_bytes,
                           .v = buffers_.wide + 2 * part_bytes,
                           .context = buffers_.context,
                           .q_stride = 3 * hidden,
                           .k_stride = 3 * hidden,
                           .v_stride = 3 * hidden,
                           .context_stride = hidden,
                           .scale = 1.0f / std::sqrt(static_cast<float>(model_.head_dim())),
                           .rule = {},
                           .bias = nullptr,
                           .bias_stride = 0,
                           .allowed = nullptr,
                           .allowed_stride = 0,
                           .mask_starts = nullptr,
                           .tasks = run.at<AttentionTask>(run.layout.tasks)};
  ATTENDANT_CUDA_TRY(run.Done(LaunchAttention(states_, args, run.counts(), run.size.attention_tasks,
                                              model_.config().heads, model_.head_dim(), run.stream),
                              "attention", ATTENDANT_CUDA_GROUP_ATTENTION));
  if (model_.dtype() != DType::kFp8) return {};
  const ActivateArgs quantize{.activation = Activation::kIdentity,
                              .values = buffers_.context,
                              .quantized = buffers_.quantized,
                              .scales = buffers_.scales};
  return run.Done(
      LaunchActivate(states_, quantize, run.counts(), run.size.tokens, hidden, run.stream),
      "quantizing", ATTENDANT_CUDA_GROUP_ACTIVATION);
}

// update = f(states up^T) down^T, where the matmul does not apply f itself
Status EncoderPass::FeedForward(const Run& run, const DeviceLayer& layer) const {
  const AttendantCudaConfig& config = model_.config();
  ATTENDANT_CUDA_TRY(Linear(run, layer, MatmulKind::kFfnUp));
  if (model_.shape(MatmulKind::kFfnUp).epilogue == Epilogue::kBias) {
    const ActivateArgs args{.activation = ActivationOf(config.activation),
                            .values = buffers_.wide,
                            .quantized = buffers_.quantized,
                            .scales = buffers_.scales};
    ATTENDANT_CUDA_TRY(run.Done(
        LaunchActivate(states_, args, run.counts(), run.size.tokens, config.ffn, run.stream),
        "the activation", ATTENDANT_CUDA_GROUP_ACTIVATION));
  }
  return Linear(run, layer, MatmulKind::kFfnDown);
}

Status EncoderPass::Linear(const Run& run, const DeviceLayer& layer, MatmulKind kind) const {
  const auto row_class = static_cast<size_t>(RowClass(run.size.rows));
  ATTENDANT_CUDA_TRY(Multiply(matmul_context_, model_.shape(kind),
                              OperandsOf(buffers_, model_.dtype(), kind, layer.matmul(kind)),
                              run.size.rows, algorithms_[row_class][static_cast<size_t>(kind)],
                              run.stream));
  return run.Done(cudaSuccess, "", ATTENDANT_CUDA_GROUP_MATMULS);
}

// states = LayerNorm(states + update)
Status EncoderPass::Norm(const Run& run, const DeviceNorm& norm) const {
  const ResidualNormArgs args{.update = buffers_.update,
                              .gamma = norm.gamma,
                              .beta = norm.beta,
                              .epsilon = model_.config().layer_norm_epsilon,
                              .states = buffers_.states,
                              .quantized = buffers_.quantized,
                              .scales = buffers_.scales};
  return run.Done(LaunchResidualNorm(states_, args, run.counts(), run.size.tokens,
                                     model_.config().hidden, run.stream),
                  "LayerNorm", ATTENDANT_CUDA_GROUP_NORM);
}

Status EncoderPass::Pool(const Run& run) const {
  const PoolArgs args{.states = buffers_.states,
                      .seq_starts = run.at<int32_t>(run.layout.seq_starts),
                      .tasks = run.at<PoolTask>(run.layout.pool_tasks),
                      .pooled = buffers_.pooled};
  return run.Done(LaunchPool(states_, args, run.counts(), run.size.sequences,
                             model_.config().hidden, run.stream),
                  "pooling", ATTENDANT_CUDA_GROUP_OUTPUT);
}

}  // namespace attendant::cuda
