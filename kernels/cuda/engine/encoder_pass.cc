// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/encoder_pass.h"

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
    case ATTENDANT_CUDA_SILU:
      return Activation::kSilu;
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
  const int32_t* positions() const { return at<int32_t>(layout.positions); }
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
  const Run run{
      .size = size,
      .layout = LayOutBatch(size.rows, max_sequences_, model_.config().scales_tokens != 0),
      .block = buffers_.block,
      .stream = stream,
      .observer = observer};
  ATTENDANT_CUDA_TRY(Embed(run));
  for (int64_t layer = 0; layer < model_.config().layers; ++layer) {
    ATTENDANT_CUDA_TRY(Layer(run, layer));
  }
  return Pool(run);
}

// states = norm(token + position + segment), or what a projection makes of them; or that is the
// residual and states go through the first branch's norm.
Status EncoderPass::Embed(const Run& run) const {
  const DeviceWeights& weights = model_.weights();
  const AttendantCudaConfig& config = model_.config();
  const bool projects = ProjectsEmbeddings(config);
  const NormWeights none{};
  const NormWeights& next = NormsBefore(config) ? weights.layers.front().attention_norm : none;
  const EmbedArgs args{
      .token_ids = run.at<int32_t>(run.layout.token_ids),
      .positions = run.positions(),
      .segment_ids = run.at<int32_t>(run.layout.segment_ids),
      .token_embedding = weights.token_embedding,
      .position_embedding = weights.position_embedding,
      .segment_embedding = weights.segment_embedding,
      .norm = weights.embedding_norm,
      .epsilon = config.layer_norm_epsilon,
      .states = projects ? buffers_.wide : buffers_.states,
      .quantized = buffers_.quantized,
      .scales = buffers_.scales,
      .rms = config.rms_norm != 0,
      .token_scale = config.embedding_scale > 0 ? config.embedding_scale : 1.0f,
      .token_scales = config.scales_tokens != 0 ? run.at<float>(run.layout.token_scales) : nullptr,
      .residual = projects ? nullptr : buffers_.residual,
      .next = projects ? none : next};
  ATTENDANT_CUDA_TRY(run.Done(
      LaunchEmbed(states_, args, run.counts(), run.size.tokens, InputWidth(config), run.stream),
      "embedding", ATTENDANT_CUDA_GROUP_EMBED));
  if (projects) ATTENDANT_CUDA_TRY(ProjectEmbeddings(run, next));
  return run.observer == nullptr ? Status() : run.observer->AfterLayer(0);
}

// states = embeddings W + b, or that is the residual and states = next(residual)
Status EncoderPass::ProjectEmbeddings(const Run& run, const NormWeights& next) const {
  ATTENDANT_CUDA_TRY(Linear(run, model_.weights().embedding_projection, MatmulKind::kEmbedding));
  if (buffers_.residual != nullptr) {
    const auto values = static_cast<size_t>(run.size.tokens * model_.config().hidden);
    ATTENDANT_CUDA_TRY(
        Check(cudaMemsetAsync(buffers_.residual, 0, values * sizeof(float), run.stream),
              "clearing the residual"));
  }
  return AddBranch(run, buffers_.update, {}, next);
}

Status EncoderPass::Layer(const Run& run, int64_t layer) const {
  const ProfilerRange range("attendant: launch a layer");
  const DeviceLayer& weights = model_.weights().layers[static_cast<size_t>(layer)];
  const bool last = layer + 1 == model_.config().layers;
  ATTENDANT_CUDA_TRY(Linear(run, weights, MatmulKind::kQkv));
  ATTENDANT_CUDA_TRY(NormWhole(run, weights));
  ATTENDANT_CUDA_TRY(PlaceHeads(run, weights));
  if (run.observer != nullptr) ATTENDANT_CUDA_TRY(run.observer->AfterQkv(layer));
  ATTENDANT_CUDA_TRY(Attend(run, layer));
  ATTENDANT_CUDA_TRY(Linear(run, weights, MatmulKind::kAttentionOutput));
  if (!NormsBefore(model_.config())) {
    ATTENDANT_CUDA_TRY(Norm(run, weights.attention_output_norm, weights.attention_norm));
    ATTENDANT_CUDA_TRY(FeedForward(run, weights));
    ATTENDANT_CUDA_TRY(Norm(run, {}, weights.ffn_norm));
    if (last && model_.weights().final_norm.gamma != nullptr) {
      ATTENDANT_CUDA_TRY(AddBranch(run, buffers_.states, {}, model_.weights().final_norm));
    }
  } else {
    const NormWeights& next =
        last ? model_.weights().final_norm
             : model_.weights().layers[static_cast<size_t>(layer + 1)].attention_norm;
    ATTENDANT_CUDA_TRY(
        AddBranch(run, buffers_.update, weights.attention_output_norm, weights.ffn_norm));
    ATTENDANT_CUDA_TRY(FeedForward(run, weights));
    ATTENDANT_CUDA_TRY(AddBranch(run, buffers_.update, weights.ffn_output_norm, next));
  }
  return run.observer == nullptr ? Status() : run.observer->AfterLayer(layer + 1);
}

// Queries and keys with norms of all their heads together, where there are such.
Status EncoderPass::NormWhole(const Run& run, const DeviceLayer& layer) const {
  if (layer.whole_query_norm.gamma == nullptr) return {};
  const AttendantCudaConfig& config = model_.config();
  const WholeNormArgs args{.qkv = buffers_.wide,
                           .stride = QkvWidth(config),
                           .query_width = ContextWidth(config),
                           .key_width = KeyWidth(config),
                           .query_norm = layer.whole_query_norm,
                           .key_norm = layer.whole_key_norm,
                           .epsilon = config.layer_norm_epsilon,
                           .rms = config.rms_norm != 0};
  return run.Done(LaunchWholeNorm(states_, args, run.counts(), run.size.tokens, run.stream),
                  "a norm of queries", ATTENDANT_CUDA_GROUP_ATTENTION);
}

// Queries and keys with norms of each head and rotary positions, where there are such.
Status EncoderPass::PlaceHeads(const Run& run, const DeviceLayer& layer) const {
  const DeviceWeights& weights = model_.weights();
  if (weights.rotary == nullptr && layer.query_norm == nullptr) return {};
  const AttendantCudaConfig& config = model_.config();
  const PlaceHeadsArgs args{.qkv = buffers_.wide,
                            .stride = QkvWidth(config),
                            .heads = static_cast<int32_t>(config.heads),
                            .key_heads = static_cast<int32_t>(KeyHeads(config)),
                            .head_dim = static_cast<int32_t>(model_.head_dim()),
                            .query_norm = layer.query_norm,
                            .key_norm = layer.key_norm,
                            .epsilon = config.layer_norm_epsilon,
                            .rotary = layer.local ? weights.local_rotary : weights.rotary,
                            .positions = run.positions()};
  return run.Done(LaunchPlaceHeads(states_, args, run.counts(), run.size.tokens, run.stream),
                  "placing heads", ATTENDANT_CUDA_GROUP_ATTENTION);
}

// context = softmax(q k^T * scale, as the layer has it) v
Status EncoderPass::Attend(const Run& run, int64_t layer) const {
  const AttendantCudaConfig& config = model_.config();
  const int64_t width = ContextWidth(config), stride = QkvWidth(config);
  const std::byte* k = buffers_.wide + width * StateBytes(states_);
  const AttentionArgs args{.q = buffers_.wide,
                           .k = k,
                           .v = k + KeyWidth(config) * StateBytes(states_),
                           .context = buffers_.context,
                           .q_stride = stride,
                           .k_stride = stride,
                           .v_stride = stride,
                           .context_stride = width,
                           .scale = ScoreScale(config),
                           .rule = model_.rule(layer),
                           .heads_per_key = static_cast<int32_t>(config.heads / KeyHeads(config)),
                           .distance = model_.distances(layer, run.positions()),
                           .bias = nullptr,
                           .bias_stride = 0,
                           .allowed = nullptr,
                           .allowed_stride = 0,
                           .mask_starts = nullptr,
                           .tasks = run.at<AttentionTask>(run.layout.tasks)};
  ATTENDANT_CUDA_TRY(run.Done(LaunchAttention(states_, args, run.counts(), run.size.attention_tasks,
                                              config.heads, model_.head_dim(), run.stream),
                              "attention", ATTENDANT_CUDA_GROUP_ATTENTION));
  if (model_.dtype() != DType::kFp8) return {};
  const ActivateArgs quantize{.activation = Activation::kIdentity,
                              .values = buffers_.context,
                              .quantized = buffers_.quantized,
                              .scales = buffers_.scales};
  return run.Done(
      LaunchActivate(states_, quantize, run.counts(), run.size.tokens, width, run.stream),
      "quantizing", ATTENDANT_CUDA_GROUP_ACTIVATION);
}

// update = f(states up^T) down^T, where the matmul does not apply f itself; or gated
Status EncoderPass::FeedForward(const Run& run, const DeviceLayer& layer) const {
  const AttendantCudaConfig& config = model_.config();
  ATTENDANT_CUDA_TRY(Linear(run, layer, MatmulKind::kFfnUp));
  if (model_.shape(MatmulKind::kFfnUp).epilogue == Epilogue::kBias) {
    const ActivateArgs args{.activation = ActivationOf(config.activation),
                            .values = buffers_.wide,
                            .quantized = buffers_.quantized,
                            .scales = buffers_.scales,
                            .gated = config.gated_ffn != 0,
                            .out = buffers_.gated};
    ATTENDANT_CUDA_TRY(run.Done(
        LaunchActivate(states_, args, run.counts(), run.size.tokens, config.ffn, run.stream),
        "the activation", ATTENDANT_CUDA_GROUP_ACTIVATION));
  }
  return Linear(run, layer, MatmulKind::kFfnDown);
}

Status EncoderPass::Linear(const Run& run, const DeviceLinear& linear, MatmulKind kind) const {
  const auto row_class = static_cast<size_t>(RowClass(run.size.rows));
  ATTENDANT_CUDA_TRY(Multiply(matmul_context_, model_.shape(kind),
                              OperandsOf(buffers_, model_.dtype(), kind, linear), run.size.rows,
                              algorithms_[row_class][static_cast<size_t>(kind)], run.stream));
  return run.Done(cudaSuccess, "", ATTENDANT_CUDA_GROUP_MATMULS);
}

// states = norm(states + update), or, with a norm of the branch too, norm(states +
// branch_norm(states + update))
Status EncoderPass::Norm(const Run& run, const NormWeights& branch_norm,
                         const NormWeights& norm) const {
  const ResidualNormArgs args{.update = buffers_.update,
                              .norm = norm,
                              .epsilon = model_.config().layer_norm_epsilon,
                              .states = buffers_.states,
                              .quantized = buffers_.quantized,
                              .scales = buffers_.scales,
                              .rms = model_.config().rms_norm != 0};
  const int64_t hidden = model_.config().hidden;
  return run.Done(
      branch_norm.gamma == nullptr
          ? LaunchResidualNorm(states_, args, run.counts(), run.size.tokens, hidden, run.stream)
          : LaunchSecondNorm(states_, args, branch_norm, run.counts(), run.size.tokens, hidden,
                             run.stream),
      "a norm", ATTENDANT_CUDA_GROUP_NORM);
}

// residual += norm(update), states = next(residual); without a residual, states =
// next(norm(update))
Status EncoderPass::AddBranch(const Run& run, const std::byte* update, const NormWeights& norm,
                              const NormWeights& next) const {
  const BranchNormArgs args{.update = update,
                            .norm = norm,
                            .residual = buffers_.residual,
                            .next = next,
                            .epsilon = model_.config().layer_norm_epsilon,
                            .rms = model_.config().rms_norm != 0,
                            .states = buffers_.states,
                            .quantized = buffers_.quantized,
                            .scales = buffers_.scales};
  return run.Done(LaunchBranchNorm(states_, args, run.counts(), run.size.tokens,
                                   model_.config().hidden, run.stream),
                  "a norm", ATTENDANT_CUDA_GROUP_NORM);
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
