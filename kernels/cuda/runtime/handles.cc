// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/runtime/handles.h"

namespace attendant::cuda {

Status MakeStream(Stream& stream) {
  cudaStream_t made = nullptr;
  ATTENDANT_CUDA_TRY(
      Check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream"));
  stream.reset(made);
  return {};
}

Status MakeEvent(EventUse use, Event& event) {
  cudaEvent_t made = nullptr;
  const unsigned flags =
      cudaEventBlockingSync | (use == EventUse::kWaiting ? cudaEventDisableTiming : 0u);
  ATTENDANT_CUDA_TRY(Check(cudaEventCreateWithFlags(&made, flags), "making an event"));
  event.reset(made);
  return {};
}

Status MakeCublasLt(CublasLt& handle) {
  cublasLtHandle_t made = nullptr;
  ATTENDANT_CUDA_TRY(Check(cublasLtCreate(&made), "starting cuBLASLt"));
  handle.reset(made);
  return {};
}

Status AllocateDevice(int64_t bytes, DeviceMemory& memory) {
  void* made = nullptr;
  const cudaError_t error = cudaMalloc(&made, static_cast<size_t>(bytes));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free_bytes = 0, total_bytes = 0;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) cudaGetLastError();
    return Status::Error(ATTENDANT_CUDA_RESOURCE_EXHAUSTED,
                         "%lld bytes of the device's memory are needed, %zu of %zu are free",
                         static_cast<long long>(bytes), free_bytes, total_bytes);
  }
  ATTENDANT_CUDA_TRY(Check(error, "allocating the device's memory"));
  memory.reset(static_cast<std::byte*>(made));
  return {};
}

Status AllocatePinned(int64_t bytes, PinnedMemory& memory) {
  void* made = nullptr;
  const cudaError_t error = cudaHostAlloc(&made, static_cast<size_t>(bytes), cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return Status::Error(ATTENDANT_CUDA_RESOURCE_EXHAUSTED,
                         "%lld bytes of pinned memory cannot be had",
                         static_cast<long long>(bytes));
  }
  ATTENDANT_CUDA_TRY(Check(error, "allocating pinned memory"));
  memory.reset(static_cast<std::byte*>(made));
  return {};
}

}  // namespace attendant::cuda
