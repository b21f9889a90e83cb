// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/support/cuda_emulation/machine.h"

namespace attendant::cuda_emulation {

bool IsInside(const Machine& machine, const void* pointer, size_t bytes, bool pinned) {
  const auto* begin = static_cast<const std::byte*>(pointer);
  auto at = machine.memory.upper_bound(begin);
  if (at == machine.memory.begin()) return false;
  --at;
  return at->second.pinned == pinned && begin + bytes <= at->first + at->second.bytes;
}

namespace {

// Whole units, as the driver gives them out, and never nothing: pointers are unique.
constexpr size_t kUnit = 512;
// Only the begin of large pieces is filled: pages that nobody touches cost nothing.
constexpr size_t kPoisonedBytes = size_t{1} << 20;

cudaError_t Allocate(Machine& machine, void** pointer, size_t bytes, bool pinned) {
  const int device = ThisThread().device;
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  ++machine.allocations;
  *pointer = nullptr;
  const size_t size = (bytes + kUnit - 1) / kUnit * kUnit;
  Device& on = machine.devices[static_cast<size_t>(device)];
  const int64_t limit = pinned ? machine.options.pinned_bytes : machine.options.device_bytes;
  const int64_t used = pinned ? machine.alive.pinned_bytes : on.used_bytes;
  if (static_cast<int64_t>(size) > limit - used) return cudaErrorMemoryAllocation;
  void* memory = std::aligned_alloc(kUnit, size);
  if (memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(memory, 0xff, std::min(size, kPoisonedBytes));
  machine.memory[static_cast<std::byte*>(memory)] = {size, device, pinned};
  (pinned ? machine.alive.pinned_allocations : machine.alive.device_allocations) += 1;
  (pinned ? machine.alive.pinned_bytes : machine.alive.device_bytes) += static_cast<int64_t>(size);
  if (!pinned) on.used_bytes += static_cast<int64_t>(size);
  *pointer = memory;
  return cudaSuccess;
}

cudaError_t Release(Machine& machine, void* pointer, bool pinned) {
  if (pointer == nullptr) return cudaSuccess;
  const auto at = machine.memory.find(static_cast<std::byte*>(pointer));
  if (at == machine.memory.end() || at->second.pinned != pinned) return cudaErrorInvalidValue;
  // Releasing waits for the device, as the driver does.
  for (CUstream_st* stream : machine.streams) {
    if (stream->device == at->second.device) Drain(machine, stream);
  }
  const auto bytes = static_cast<int64_t>(at->second.bytes);
  (pinned ? machine.alive.pinned_allocations : machine.alive.device_allocations) -= 1;
  (pinned ? machine.alive.pinned_bytes : machine.alive.device_bytes) -= bytes;
  if (!pinned) machine.devices[static_cast<size_t>(at->second.device)].used_bytes -= bytes;
  machine.memory.erase(at);
  std::free(pointer);
  return cudaSuccess;
}

}  // namespace
}  // namespace attendant::cuda_emulation

using attendant::cuda_emulation::Call;
using attendant::cuda_emulation::IsInside;
using attendant::cuda_emulation::Machine;
using attendant::cuda_emulation::ReleasingCall;
using attendant::cuda_emulation::ThisThread;

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return Call(ThisThread().device, [&](Machine& machine) {
    return attendant::cuda_emulation::Allocate(machine, pointer, bytes, false);
  });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return Call(ThisThread().device, [&](Machine& machine) {
    return attendant::cuda_emulation::Allocate(machine, pointer, bytes, true);
  });
}

cudaError_t cudaFree(void* pointer) {
  return ReleasingCall(ThisThread().device, [&](Machine& machine) {
    return attendant::cuda_emulation::Release(machine, pointer, false);
  });
}

cudaError_t cudaFreeHost(void* pointer) {
  return ReleasingCall(ThisThread().device, [&](Machine& machine) {
    return attendant::cuda_emulation::Release(machine, pointer, true);
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return Call(ThisThread().device, [&](Machine& machine) {
    const auto& device = machine.devices[static_cast<size_t>(ThisThread().device)];
    *total_bytes = static_cast<size_t>(machine.options.device_bytes);
    *free_bytes = static_cast<size_t>(machine.options.device_bytes - device.used_bytes);
    return cudaSuccess;
  });
}

// A side on the host must be pinned: from other memory the copy would wait.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return Call(stream->device, [&](Machine& machine) {
    if (bytes == 0) return cudaSuccess;
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDefault) {
      return cudaErrorInvalidMemcpyDirection;
    }
    if (!IsInside(machine, to, bytes, kind == cudaMemcpyDeviceToHost) ||
        !IsInside(machine, from, bytes, kind == cudaMemcpyHostToDevice)) {
      return cudaErrorInvalidValue;
    }
    return Enqueue(machine, stream, [to, from, bytes] { std::memcpy(to, from, bytes); });
  });
}

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return Call(stream->device, [&](Machine& machine) {
    if (!IsInside(machine, pointer, bytes, false)) return cudaErrorInvalidValue;
    return Enqueue(machine, stream, [=] { std::memset(pointer, value, bytes); });
  });
}
