// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda_emulation/machine.h"

#include <cstdio>
#include <cstdlib>

namespace attendant::cuda_emulation {

Machine& TheMachine() {
  static Machine machine;
  return machine;
}

ThreadState& ThisThread() {
  thread_local ThreadState state;
  return state;
}

cudaError_t BeginCall(Machine& machine, int device) {
  if (!machine.options.driver) return cudaErrorInsufficientDriver;
  const int64_t number = machine.calls++;
  const auto failing = machine.failing_calls.find(number);
  if (device < 0 || device >= machine.options.devices) {
    return failing == machine.failing_calls.end() ? cudaSuccess : failing->second;
  }
  Device& on = machine.devices[static_cast<size_t>(device)];
  if (failing != machine.failing_calls.end()) {
    if (IsSticky(failing->second)) on.lost = failing->second;
    return failing->second;
  }
  return on.lost;
}

cudaError_t EndCall(cudaError_t error) {
  if (error != cudaSuccess) ThisThread().last_error = error;
  return error;
}

bool IsSticky(cudaError_t error) {
  return error == cudaErrorECCUncorrectable || error == cudaErrorNvlinkUncorrectable ||
         (error >= cudaErrorIllegalAddress && error <= cudaErrorTensorMemoryLeak &&
          error != cudaErrorLaunchOutOfResources);
}

void Configure(const Options& options) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mutex);
  if (machine.alive != Alive{}) {
    std::fprintf(stderr, "the emulated machine still holds things\n");
    std::abort();
  }
  machine.options = options;
  machine.devices.assign(static_cast<size_t>(options.devices), {});
  machine.calls = machine.allocations = machine.work_run = 0;
  machine.failing_calls.clear();
  machine.failing_work.clear();
  machine.random.seed(options.seed);
  ThisThread() = {};
}

Alive CountAlive() {
  const std::lock_guard lock(TheMachine().mutex);
  return TheMachine().alive;
}

int64_t CountCalls() {
  const std::lock_guard lock(TheMachine().mutex);
  return TheMachine().calls;
}

int64_t CountWork() {
  const std::lock_guard lock(TheMachine().mutex);
  return TheMachine().work_run;
}

int64_t CountAllocations() {
  const std::lock_guard lock(TheMachine().mutex);
  return TheMachine().allocations;
}

void FailCall(int64_t number, cudaError_t error) {
  const std::lock_guard lock(TheMachine().mutex);
  TheMachine().failing_calls[number] = error;
}

void FailWork(int64_t number, cudaError_t error) {
  const std::lock_guard lock(TheMachine().mutex);
  TheMachine().failing_work[number] = error;
}

cudaError_t EnqueueOnStream(cudaStream_t stream, std::function<void()> work) {
  return Call(stream->device,
              [&](Machine& machine) { return Enqueue(machine, stream, std::move(work)); });
}

}  // namespace attendant::cuda_emulation

using attendant::cuda_emulation::Call;
using attendant::cuda_emulation::Machine;
using attendant::cuda_emulation::MaxSharedBytes;
using attendant::cuda_emulation::ThisThread;

cudaError_t cudaGetDeviceCount(int* count) {
  return Call(-1, [&](Machine& machine) {
    *count = machine.options.devices;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaSetDevice(int device) {
  return Call(device, [&](Machine& machine) {
    if (device < 0 || device >= machine.options.devices) return cudaErrorInvalidDevice;
    ThisThread().device = device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return Call(-1, [&](Machine&) {
    *device = ThisThread().device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return Call(device, [&](Machine& machine) {
    if (device < 0 || device >= machine.options.devices) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "emulated %d", device);
    properties->totalGlobalMem = static_cast<size_t>(machine.options.device_bytes);
    properties->sharedMemPerBlockOptin = 227 * 1024;
    properties->major = machine.options.compute_capability / 10;
    properties->minor = machine.options.compute_capability % 10;
    properties->multiProcessorCount = 132;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = attendant::cuda_emulation::TheMachine().options.driver ? CUDART_VERSION : 0;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  ThisThread().last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return ThisThread().last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    default:
      return "cudaError";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    default:
      return "an emulated error";
  }
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  const int device = ThisThread().device;
  return Call(device, [&](Machine& machine) {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        value > MaxSharedBytes(machine.options.compute_capability)) {
      return cudaErrorInvalidValue;
    }
    machine.shared_bytes[{device, function}] = value;
    return cudaSuccess;
  });
}
