// SPDX-License-Identifier: Apache-2.0
// What a session shows of the encoder's inside to the sequences that ask for it (LayerOutputs).
#include <algorithm>
#include <cmath>

#include "kernels/cpu/encoder/cpu_session.h"

namespace attendant::cpu {

// Beside the attention of the same task: the layer's queries and keys are still in the cache, and
// no barrier is added.
void CpuSession::WriteWeights(const AttentionTask& task, const LayerOutputs& wanted, int64_t layer,
                              const AttentionScratch& scratch) {
  const EncoderConfig& config = encoder_.config();
  const int64_t head_dim = config.head_dim();
  const int64_t value_bytes = buffers_.activations.qkv_value_bytes;
  const int64_t values = task.len * task.len;  // of one head
  float* out = wanted.attention_weights;
  for (const int32_t wanted_layer : wanted.attention_layers) {
    for (const int32_t head : wanted.attention_heads) {
      if (wanted_layer == layer && head >= task.head_begin && head < task.head_end) {
        const std::byte* q =
            buffers_.activations.qkv.row(task.seq_start) + head * head_dim * value_bytes;
        const AttentionArgs args{
            .q = q,
            .k = q + config.hidden * value_bytes,
            .q_stride = 3 * config.hidden,
            .k_stride = 3 * config.hidden,
            .keys = task.len,
            .head_dim = head_dim,
            .query_begin = task.query_begin,
            .query_end = task.query_end,
            .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
            .scratch = scratch.weights,
        };
        kernels_.attention_weights(args, out, task.len);
      }
      out += values;
    }
  }
}

// `layer` is the one that reads the states next.
void CpuSession::WriteHiddenStates(const PackedBatch& batch, const OutputSpec& spec,
                                   int64_t layer) {
  if (spec.layers.empty()) return;
  pool_.ParallelFor(batch.batch(), [&](int64_t index, int) {
    const LayerOutputs& wanted = spec.layers[static_cast<size_t>(index)];
    const int64_t values = batch.len(index) * encoder_.config().hidden;
    float* out = wanted.hidden_states;
    for (const int32_t wanted_layer : wanted.hidden_layers) {
      if (wanted_layer == layer)
        std::copy_n(buffers_.activations.states.row(batch.seq_start(index)), values, out);
      out += values;
    }
  });
}

}  // namespace attendant::cpu
