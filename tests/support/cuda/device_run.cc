// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda/device_run.h"

#include <algorithm>
#include <cmath>

namespace attendant::cuda_test {
namespace {

// Rooms for what the sequences ask for, pointed to by one entry each.
std::vector<AttendantCudaLayerOutputs> MakeRooms(const AttendantCudaConfig& config,
                                                 const PackedSequences& batch, const Inside& inside,
                                                 RunResults& results) {
  std::vector<AttendantCudaLayerOutputs> layers;
  for (int64_t i = 0; i < batch.batch(); ++i) {
    const auto len = static_cast<size_t>(batch.len(i));
    const size_t queries = inside.attention_queries > 0
                               ? std::min(len, static_cast<size_t>(inside.attention_queries))
                               : len;
    results.attention_weights.emplace_back(
        inside.attention_layers.size() * inside.attention_heads.size() * queries * len, NAN);
    results.hidden_states.emplace_back(
        inside.hidden_layers.size() * len * static_cast<size_t>(config.hidden), NAN);
    layers.push_back({.attention_layers = inside.attention_layers.data(),
                      .num_attention_layers = static_cast<int64_t>(inside.attention_layers.size()),
                      .attention_heads = inside.attention_heads.data(),
                      .num_attention_heads = static_cast<int64_t>(inside.attention_heads.size()),
                      .attention_weights = results.attention_weights.back().data(),
                      .hidden_layers = inside.hidden_layers.data(),
                      .num_hidden_layers = static_cast<int64_t>(inside.hidden_layers.size()),
                      .hidden_states = results.hidden_states.back().data(),
                      .attention_queries = inside.attention_queries});
  }
  return layers;
}

}  // namespace

AttendantCudaStatus MakeModel(const AttendantCudaInterface& interface, int32_t device,
                              const RandomEncoder& encoder, int32_t dtype, ModelPointer& model) {
  AttendantCudaModel* made = nullptr;
  const AttendantCudaStatus status =
      interface.create_model(device, &encoder.config(), &encoder.weights(), dtype, &made);
  model = ModelPointer(made, {&interface});
  return status;
}

AttendantCudaStatus MakeSession(const AttendantCudaInterface& interface, AttendantCudaModel* model,
                                int64_t max_tokens, int64_t max_sequences,
                                SessionPointer& session) {
  const AttendantCudaLimits limits{.max_batch_tokens = max_tokens,
                                   .max_batch_sequences = max_sequences};
  AttendantCudaSession* made = nullptr;
  const AttendantCudaStatus status = interface.create_session(model, &limits, &made);
  session = SessionPointer(made, {&interface});
  return status;
}

RunResults RunAll(const AttendantCudaInterface& interface, AttendantCudaSession* session,
                  const AttendantCudaConfig& config, const PackedSequences& batch,
                  const Inside& inside) {
  RunResults results;
  const std::vector<AttendantCudaSequenceOutputs> wanted(
      static_cast<size_t>(batch.batch()),
      {.last_hidden_state = 1, .pooling = ATTENDANT_CUDA_POOL_MEAN, .normalize = 1, .dims = 0});
  const bool any = !inside.attention_layers.empty() || !inside.hidden_layers.empty();
  std::vector<AttendantCudaLayerOutputs> layers;
  if (any) layers = MakeRooms(config, batch, inside, results);
  const AttendantCudaOutputSpec spec{.sequences = wanted.data(),
                                     .layers = any ? layers.data() : nullptr};
  const AttendantCudaBatch view = batch.view();
  AttendantCudaOutputs outputs{};
  results.status = interface.run(session, &view, &spec, &outputs);
  if (results.status.code == ATTENDANT_CUDA_OK) {
    results.last_hidden_state.assign(outputs.last_hidden_state,
                                     outputs.last_hidden_state + batch.tokens() * config.hidden);
    results.pooled.assign(outputs.pooled, outputs.pooled + batch.batch() * config.hidden);
  }
  return results;
}

std::string Describe(const AttendantCudaStatus& status) {
  return "code " + std::to_string(status.code) + ": " + status.message;
}

}  // namespace attendant::cuda_test
