// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/cuda/encoder_case.h"

// Models and sessions of the C interface with owners, and runs with everything copied out.
namespace attendant::cuda_test {

// The library's table; null, saying why on stderr, when it cannot be had. It stays loaded.
const AttendantCudaInterface* LoadInterface(const char* path);
AttendantCudaStatus DescribeFirstDevice(const AttendantCudaInterface& interface,
                                        AttendantCudaDevice& device);

struct DestroyModel {
  const AttendantCudaInterface* interface;
  void operator()(AttendantCudaModel* model) const { interface->destroy_model(model); }
};
using ModelPointer = std::unique_ptr<AttendantCudaModel, DestroyModel>;
struct DestroySession {
  const AttendantCudaInterface* interface;
  void operator()(AttendantCudaSession* session) const { interface->destroy_session(session); }
};
using SessionPointer = std::unique_ptr<AttendantCudaSession, DestroySession>;

AttendantCudaStatus MakeModel(const AttendantCudaInterface& interface, int32_t device,
                              const RandomEncoder& encoder, int32_t dtype, ModelPointer& model);
AttendantCudaStatus MakeSession(const AttendantCudaInterface& interface, AttendantCudaModel* model,
                                int64_t max_tokens, int64_t max_sequences, SessionPointer& session);

// The layers and heads whose inside every sequence asks for; empty for none.
struct Inside {
  std::vector<int32_t> attention_layers, attention_heads, hidden_layers;
  int64_t attention_queries = 0;  // 0: all
};

struct RunResults {
  AttendantCudaStatus status{};
  std::vector<float> last_hidden_state;  // [tokens, hidden]
  std::vector<float> pooled;             // [batch, hidden]
  // By sequence, as AttendantCudaLayerOutputs has them.
  std::vector<std::vector<float>> attention_weights, hidden_states;
};
// All states, and normalized means.
RunResults RunAll(const AttendantCudaInterface& interface, AttendantCudaSession* session,
                  const AttendantCudaConfig& config, const PackedSequences& batch,
                  const Inside& inside = {});

std::string Describe(const AttendantCudaStatus& status);  // "code 2: ..."

}  // namespace attendant::cuda_test
