// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/session_observer.h"

#include <cmath>

#include "kernels/cuda/kernels/attention_kernels.h"
#include "kernels/cuda/kernels/kernels.h"

namespace attendant::cuda {

Status SessionObserver::AfterGroup(int group) {
  return run_.timer == nullptr ? Status() : run_.timer->Mark(group, run_.stream);
}

Status SessionObserver::AfterQkv(int64_t layer) {
  if (run_.layers == nullptr) return {};
  for (int64_t i = 0; i < run_.batch.batch; ++i) {
    const AttendantCudaLayerOutputs& wanted = run_.layers[i];
    const int64_t floats = wanted.num_attention_heads * queries(i) * len(i);
    for (int64_t j = 0; j < wanted.num_attention_layers; ++j) {
      if (wanted.attention_layers[j] != layer) continue;
      ATTENDANT_CUDA_TRY(CopyWeights(i, wanted.attention_weights + j * floats));
    }
  }
  return Send();
}

Status SessionObserver::AfterLayer(int64_t layers_done) {
  if (run_.layers == nullptr) return {};
  for (int64_t i = 0; i < run_.batch.batch; ++i) {
    const AttendantCudaLayerOutputs& wanted = run_.layers[i];
    const int64_t floats = len(i) * run_.model.config().hidden;
    for (int64_t j = 0; j < wanted.num_hidden_layers; ++j) {
      if (wanted.hidden_layers[j] != layers_done) continue;
      ATTENDANT_CUDA_TRY(CopyStates(i, wanted.hidden_states + j * floats));
    }
  }
  return Send();
}

Status SessionObserver::CopyWeights(int64_t index, float* destination) {
  const AttendantCudaLayerOutputs& wanted = run_.layers[index];
  const int64_t hidden = run_.model.config().hidden;
  const int64_t head_dim = run_.model.head_dim();
  const int64_t floats = queries(index) * len(index);
  const int64_t state_bytes = StateBytes(run_.model.dtype());
  const std::byte* q = run_.buffers.wide + run_.batch.seq_starts[index] * 3 * hidden * state_bytes;
  for (int64_t i = 0; i < wanted.num_attention_heads; ++i) {
    float* out = nullptr;
    ATTENDANT_CUDA_TRY(run_.pipe.Acquire(floats, destination + i * floats, run_.stream, &out));
    const std::byte* head_q = q + wanted.attention_heads[i] * head_dim * state_bytes;
    const AttentionWeightsArgs args{.q = head_q,
                                    .k = head_q + hidden * state_bytes,
                                    .q_stride = 3 * hidden,
                                    .k_stride = 3 * hidden,
                                    .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                                    .out = out,
                                    .queries = queries(index)};
    ATTENDANT_CUDA_TRY(
        Check(LaunchAttentionWeights(run_.model.states(), args, len(index), head_dim, run_.stream),
              "attention weights"));
  }
  return {};
}

Status SessionObserver::CopyStates(int64_t index, float* destination) {
  const int64_t hidden = run_.model.config().hidden;
  const std::byte* states =
      run_.buffers.states + run_.batch.seq_starts[index] * hidden * StateBytes(run_.model.dtype());
  float* out = nullptr;
  ATTENDANT_CUDA_TRY(run_.pipe.Acquire(len(index) * hidden, destination, run_.stream, &out));
  return Check(LaunchToFloat(run_.model.states(), states, out, len(index), hidden, run_.stream),
               "converting states");
}

// What a layer gave travels while the next computes.
Status SessionObserver::Send() {
  ATTENDANT_CUDA_TRY(run_.pipe.Send(run_.stream));
  return AfterGroup(ATTENDANT_CUDA_GROUP_OUTPUT);
}

}  // namespace attendant::cuda
