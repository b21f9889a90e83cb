// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/session_observer.h"

#include <algorithm>

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
      ATTENDANT_CUDA_TRY(CopyWeights(i, layer, wanted.attention_weights + j * floats));
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
      ATTENDANT_CUDA_TRY(CopyStates(i, layers_done, wanted.hidden_states + j * floats));
    }
  }
  return Send();
}

Status SessionObserver::CopyWeights(int64_t index, int64_t layer, float* destination) {
  const AttendantCudaLayerOutputs& wanted = run_.layers[index];
  const AttendantCudaConfig& config = run_.model.config();
  const int64_t head_bytes = run_.model.head_dim() * StateBytes(run_.model.dtype());
  const int64_t stride = QkvWidth(config);
  const int64_t rows = std::min(queries(index), run_.pipe.slot_floats() / len(index));  // at a time
  const int64_t start = run_.batch.seq_starts[index];
  const std::byte* q = run_.buffers.wide + start * stride * StateBytes(run_.model.dtype());
  const std::byte* k = q + config.heads * head_bytes;
  const DistanceRule distances = run_.model.distances(layer, run_.positions + start);
  for (int64_t i = 0; i < wanted.num_attention_heads; ++i) {
    const int64_t head = wanted.attention_heads[i];
    AttentionWeightsArgs args{.q = q + head * head_bytes,
                              .k = k + head / (config.heads / KeyHeads(config)) * head_bytes,
                              .q_stride = stride,
                              .k_stride = stride,
                              .scale = ScoreScale(config),
                              .out = nullptr,
                              .keys = run_.batch.keys == nullptr ? 0 : run_.batch.keys[index],
                              .rule = run_.model.rule(layer),
                              .distance = distances};
    if (distances.scores != nullptr) args.distance.scores += head * distances.stride;
    while (args.first_query < queries(index)) {
      args.queries = std::min(rows, queries(index) - args.first_query);
      const int64_t floats = args.queries * len(index);
      ATTENDANT_CUDA_TRY(run_.pipe.Acquire(floats, destination, run_.stream, &args.out));
      ATTENDANT_CUDA_TRY(Check(LaunchAttentionWeights(run_.model.states(), args, len(index),
                                                      run_.model.head_dim(), run_.stream),
                               "attention weights"));
      args.first_query += args.queries;
      destination += floats;
    }
  }
  return {};
}

// Where norms come before branches the states between layers are the residual.
Status SessionObserver::CopyStates(int64_t index, int64_t layers_done, float* destination) {
  const int64_t hidden = run_.model.config().hidden;
  const int64_t first = run_.batch.seq_starts[index] * hidden;
  const bool residual =
      run_.buffers.residual != nullptr && layers_done < run_.model.config().layers;
  const DType dtype = residual ? DType::kF32 : run_.model.states();
  const void* states = run_.buffers.states + first * StateBytes(dtype);
  if (residual) states = run_.buffers.residual + first;
  float* out = nullptr;
  ATTENDANT_CUDA_TRY(run_.pipe.Acquire(len(index) * hidden, destination, run_.stream, &out));
  return Check(LaunchToFloat(dtype, states, out, len(index), hidden, run_.stream),
               "converting states");
}

// A layer's outputs travel while the next layer computes.
Status SessionObserver::Send() {
  ATTENDANT_CUDA_TRY(run_.pipe.Send(run_.stream));
  return AfterGroup(ATTENDANT_CUDA_GROUP_OUTPUT);
}

}  // namespace attendant::cuda
