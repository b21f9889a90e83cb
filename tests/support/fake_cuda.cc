// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_cuda.h"

#include <algorithm>
#include <cstdio>
#include <vector>

// Answers are simple functions of what was given: state [t, i] = 1000 * token id + position + i /
// 64, pooled [i, d] = the sequence's length + d.
struct AttendantCudaModel {
  int32_t device;
  AttendantCudaConfig config;
};

struct AttendantCudaSession {
  const AttendantCudaModel* model;
  std::vector<float> states;
  std::vector<float> pooled;
};

namespace {

FakeCudaLevers levers = {.devices = 2,
                         .dtypes = 0b1111,
                         .version = ATTENDANT_CUDA_INTERFACE_VERSION,
                         .count_devices = {},
                         .create_model = {},
                         .create_session = {},
                         .run = {},
                         .models = 0,
                         .sessions = 0,
                         .runs = 0,
                         .session_devices = {},
                         .config = {}};

AttendantCudaStatus CountDevices(int32_t* count) {
  *count = levers.devices;
  return levers.count_devices;
}

AttendantCudaStatus DescribeDevice(int32_t device, AttendantCudaDevice* description) {
  *description = {};
  std::snprintf(description->name, sizeof(description->name), "Fake %d", device);
  description->compute_capability = 90;
  description->multiprocessors = 132;
  description->memory_bytes = int64_t{1} << 30;
  description->dtypes = levers.dtypes;
  return {};
}

AttendantCudaStatus DeviceMemory(int32_t /*device*/, int64_t* free_bytes, int64_t* total_bytes) {
  *total_bytes = int64_t{1} << 30;
  *free_bytes = *total_bytes / 4;
  return {};
}

AttendantCudaStatus CreateModel(int32_t device, const AttendantCudaConfig* config,
                                const AttendantCudaWeights* /*weights*/, int32_t /*dtype*/,
                                AttendantCudaModel** model) {
  *model = nullptr;
  if (levers.create_model.code != ATTENDANT_CUDA_OK) return levers.create_model;
  levers.config = *config;
  *model = new AttendantCudaModel{device, *config};
  ++levers.models;
  return {};
}

void DestroyModel(AttendantCudaModel* model) {
  --levers.models;
  delete model;
}

int64_t ModelBytes(const AttendantCudaModel* /*model*/) { return 1 << 20; }

AttendantCudaStatus CreateSession(AttendantCudaModel* model, const AttendantCudaLimits* /*limits*/,
                                  AttendantCudaSession** session) {
  *session = nullptr;
  if (levers.create_session.code != ATTENDANT_CUDA_OK) return levers.create_session;
  *session = new AttendantCudaSession{model, {}, {}};
  ++levers.sessions;
  ++levers.session_devices[model->device];
  return {};
}

void DestroySession(AttendantCudaSession* session) {
  --levers.sessions;
  --levers.session_devices[session->model->device];
  delete session;
}

int64_t SessionBytes(const AttendantCudaSession* /*session*/) { return 1 << 21; }

AttendantCudaStatus Run(AttendantCudaSession* session, const AttendantCudaBatch* batch,
                        const AttendantCudaOutputSpec* spec, AttendantCudaOutputs* outputs) {
  ++levers.runs;
  if (levers.run.code != ATTENDANT_CUDA_OK) return levers.run;
  const int64_t hidden = session->model->config.hidden;
  session->states.clear();
  session->pooled.clear();
  for (int64_t t = 0; t < batch->tokens; ++t) {
    for (int64_t i = 0; i < hidden; ++i) {
      session->states.push_back(static_cast<float>(1000 * batch->token_ids[t]) +
                                static_cast<float>(batch->positions[t]) +
                                static_cast<float>(i) / 64);
    }
  }
  for (int64_t s = 0; s < batch->batch; ++s) {
    const int64_t len = batch->seq_starts[s + 1] - batch->seq_starts[s];
    for (int64_t i = 0; i < hidden; ++i) session->pooled.push_back(static_cast<float>(len + i));
    if (spec->layers == nullptr) continue;
    const AttendantCudaLayerOutputs& layers = spec->layers[s];
    float* weights = layers.attention_weights;
    const int64_t maps = layers.num_attention_layers * layers.num_attention_heads;
    const int64_t wanted = layers.attention_queries;
    const int64_t queries = wanted > 0 ? std::min(wanted, len) : len;
    for (int64_t i = 0; i < maps * queries * len; ++i) weights[i] = 1.0f / static_cast<float>(len);
  }
  *outputs = {session->states.data(), session->pooled.data()};
  return {};
}

void Profile(const AttendantCudaSession* /*session*/, AttendantCudaProfile* profile) {
  *profile = {.busy_seconds = 1.5, .sampled_runs = 2, .group_seconds = {1, 2, 3, 4, 5, 6}};
}

AttendantCudaInterface interface = {.version = ATTENDANT_CUDA_INTERFACE_VERSION,
                                    .build = "fake",
                                    .count_devices = CountDevices,
                                    .describe_device = DescribeDevice,
                                    .device_memory = DeviceMemory,
                                    .create_model = CreateModel,
                                    .destroy_model = DestroyModel,
                                    .model_bytes = ModelBytes,
                                    .create_session = CreateSession,
                                    .destroy_session = DestroySession,
                                    .session_bytes = SessionBytes,
                                    .run = Run,
                                    .profile = Profile};

}  // namespace

extern "C" {
const AttendantCudaInterface* attendant_cuda_interface(uint32_t version);
FakeCudaLevers* fake_cuda_levers();

const AttendantCudaInterface* attendant_cuda_interface(uint32_t version) {
  return version == levers.version ? &interface : nullptr;
}

FakeCudaLevers* fake_cuda_levers() { return &levers; }
}
