// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <new>

#include "kernels/cuda/cuda_interface.h"
#include "kernels/cuda/engine/session.h"
#include "kernels/cuda/model/model.h"
#include "kernels/cuda/runtime/device.h"

// The table of cuda_interface.h: nothing that is thrown gets past here.

struct AttendantCudaModel {
  std::unique_ptr<attendant::cuda::Model> model;
};
struct AttendantCudaSession {
  std::unique_ptr<attendant::cuda::Session> session;
};

namespace attendant::cuda {
namespace {

// Also takes an error that nobody asked about off the thread, so that the first launch is not
// blamed for it.
template <typename Body>
AttendantCudaStatus Guard(Body body) noexcept {
  cudaGetLastError();
  try {
    return body().for_caller();
  } catch (const std::bad_alloc&) {
    return Status::Error(ATTENDANT_CUDA_RESOURCE_EXHAUSTED, "the host's memory does not suffice")
        .for_caller();
  } catch (...) {
    return Status::Error(ATTENDANT_CUDA_INTERNAL, "an unexpected exception").for_caller();
  }
}

Status Missing(const char* what) {
  return Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT, "%s is null", what);
}

AttendantCudaStatus Count(int32_t* count) {
  return Guard([&] { return count == nullptr ? Missing("count") : CountDevices(*count); });
}

AttendantCudaStatus Describe(int32_t device, AttendantCudaDevice* description) {
  return Guard([&] {
    return description == nullptr ? Missing("description") : DescribeDevice(device, *description);
  });
}

AttendantCudaStatus ReadMemory(int32_t device, int64_t* free_bytes, int64_t* total_bytes) {
  return Guard([&] {
    if (free_bytes == nullptr || total_bytes == nullptr) return Missing("a number of bytes");
    return ReadDeviceMemory(device, *free_bytes, *total_bytes);
  });
}

AttendantCudaStatus CreateModel(int32_t device, const AttendantCudaConfig* config,
                                const AttendantCudaWeights* weights, int32_t dtype,
                                AttendantCudaModel** model) {
  return Guard([&]() -> Status {
    if (model == nullptr) return Missing("model");
    *model = nullptr;
    if (config == nullptr || weights == nullptr) return Missing("config or weights");
    if (dtype < ATTENDANT_CUDA_F32 || dtype > ATTENDANT_CUDA_FP8) {
      return Status::Error(ATTENDANT_CUDA_INVALID_ARGUMENT, "dtype %d is unknown",
                           static_cast<int>(dtype));
    }
    auto made = std::make_unique<AttendantCudaModel>();
    ATTENDANT_CUDA_TRY(
        Model::Create(device, *config, *weights, static_cast<DType>(dtype), made->model));
    *model = made.release();
    return {};
  });
}

// The released memory belongs to a device. If it were not current, the runtime could start another.
void DestroyModel(AttendantCudaModel* model) {
  if (model == nullptr) return;
  cudaSetDevice(model->model->device());
  delete model;
  cudaGetLastError();
}

int64_t ModelBytes(const AttendantCudaModel* model) {
  return model == nullptr ? 0 : model->model->bytes();
}

AttendantCudaStatus CreateSession(AttendantCudaModel* model, const AttendantCudaLimits* limits,
                                  AttendantCudaSession** session) {
  return Guard([&]() -> Status {
    if (session == nullptr) return Missing("session");
    *session = nullptr;
    if (model == nullptr || limits == nullptr) return Missing("model or limits");
    auto made = std::make_unique<AttendantCudaSession>();
    ATTENDANT_CUDA_TRY(Session::Create(*model->model, *limits, made->session));
    *session = made.release();
    return {};
  });
}

void DestroySession(AttendantCudaSession* session) {
  if (session == nullptr) return;
  delete session;
  cudaGetLastError();
}

int64_t SessionBytes(const AttendantCudaSession* session) {
  return session == nullptr ? 0 : session->session->bytes();
}

AttendantCudaStatus Run(AttendantCudaSession* session, const AttendantCudaBatch* batch,
                        const AttendantCudaOutputSpec* spec, AttendantCudaOutputs* outputs) {
  return Guard([&] {
    if (session == nullptr || batch == nullptr || spec == nullptr || outputs == nullptr) {
      return Missing("session, batch, spec or outputs");
    }
    return session->session->Run(*batch, *spec, *outputs);
  });
}

void ReadProfile(const AttendantCudaSession* session, AttendantCudaProfile* profile) {
  if (session != nullptr && profile != nullptr) *profile = session->session->profile();
}

#ifndef ATTENDANT_CUDA_BUILD
#define ATTENDANT_CUDA_BUILD "CUDA"
#endif

constexpr AttendantCudaInterface kInterface = {.version = ATTENDANT_CUDA_INTERFACE_VERSION,
                                               .build = ATTENDANT_CUDA_BUILD,
                                               .count_devices = Count,
                                               .describe_device = Describe,
                                               .device_memory = ReadMemory,
                                               .create_model = CreateModel,
                                               .destroy_model = DestroyModel,
                                               .model_bytes = ModelBytes,
                                               .create_session = CreateSession,
                                               .destroy_session = DestroySession,
                                               .session_bytes = SessionBytes,
                                               .run = Run,
                                               .profile = ReadProfile};

}  // namespace
}  // namespace attendant::cuda

extern "C" __attribute__((visibility("default"))) const AttendantCudaInterface*
attendant_cuda_interface(uint32_t version) {
  return version == ATTENDANT_CUDA_INTERFACE_VERSION ? &attendant::cuda::kInterface : nullptr;
}
