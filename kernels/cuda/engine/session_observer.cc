// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/session_observer.h"

#include <cmath>

#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/kernels/kernels.h"

namespace attendant::cuda {

Status SessionObserver::AfterGroup(int group) {
  return timer_ == nullptr ? Status() : timer_->Mark(group, stream_);
}

Status SessionObserver::AfterQkv(int64_t layer) {
  if (layers_ == nullptr) return {};
  for (int64_t i = 0; i < batch_.batch; ++i) {
    const AttendantCudaLayerOutputs& wanted = layers_[i];
    const int64_t floats = wanted.num_attention_heads * len(i) * len(i);
    for (int64_t j = 0; j < wanted.num_attention_layers; ++j) {
      if (wanted.attention_layers[j] != layer) continue;
      ATTENDANT_CUDA_TRY(TakeWeights(i, wanted.attention_weights + j * floats));
    }
  }
  return Send();
}

Status SessionObserver::AfterLayer(int64_t layers_done) {
  if (layers_ == nullptr) return {};
  for (int64_t i = 0; i < batch_.batch; ++i) {
    const AttendantCudaLayerOutputs& wanted = layers_[i];
    const int64_t floats = len(i) * model_.config().hidden;
    for (int64_t j = 0; j < wanted.num_hidden_layers; ++j) {
      if (wanted.hidden_layers[j] != layers_done) continue;
      ATTENDANT_CUDA_TRY(TakeStates(i, wanted.hidden_states + j * floats));
    }
  }
  return Send();
}

Status SessionObserver::TakeWeights(int64_t index, float* destination) {
  const AttendantCudaLayerOutputs& wanted = layers_[index];
  const int64_t hidden = model_.config().hidden;
  const int64_t head_dim = model_.head_dim();
  const int64_t rows = len(index);
  const int64_t state_bytes = StateBytes(model_.dtype());
  const std::byte* q = buffers_.wide + batch_.seq_starts[index] * 3 * hidden * state_bytes;
  for (int64_t i = 0; i < wanted.num_attention_heads; ++i) {
    float* out = nullptr;
    ATTENDANT_CUDA_TRY(pipe_.Take(rows * rows, destination + i * rows * rows, stream_, &out));
    const std::byte* head_q = q + wanted.attention_heads[i] * head_dim * state_bytes;
    const AttentionWeightsArgs args{.q = head_q,
                                    .k = head_q + hidden * state_bytes,
                                    .q_stride = 3 * hidden,
                                    .k_stride = 3 * hidden,
                                    .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                                    .out = out};
    ATTENDANT_CUDA_TRY(Check(LaunchAttentionWeights(model_.states(), args, rows, head_dim, stream_),
                             "attention weights"));
  }
  return {};
}

Status SessionObserver::TakeStates(int64_t index, float* destination) {
  const int64_t hidden = model_.config().hidden;
  const std::byte* states =
      buffers_.states + batch_.seq_starts[index] * hidden * StateBytes(model_.dtype());
  float* out = nullptr;
  ATTENDANT_CUDA_TRY(pipe_.Take(len(index) * hidden, destination, stream_, &out));
  return Check(LaunchToFloat(model_.states(), states, out, len(index), hidden, stream_),
               "converting states");
}

// What a layer gave travels while the next computes.
Status SessionObserver::Send() {
  ATTENDANT_CUDA_TRY(pipe_.Send(stream_));
  return AfterGroup(ATTENDANT_CUDA_GROUP_OUTPUT);
}

}  // namespace attendant::cuda
