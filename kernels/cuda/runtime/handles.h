// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cuda/runtime/status.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define ATTENDANT_CUDA_NVTX 1
#endif

// Owners of CUDA's resources: each releases its resource once, whatever device is current. Made for
// the calling thread's current device.
namespace attendant::cuda {

namespace internal {
struct Release {
  void operator()(CUstream_st* stream) const { cudaStreamDestroy(stream); }
  void operator()(CUevent_st* event) const { cudaEventDestroy(event); }
  void operator()(CUgraph_st* graph) const { cudaGraphDestroy(graph); }
  void operator()(CUgraphExec_st* executable) const { cudaGraphExecDestroy(executable); }
  void operator()(cublasLtContext* handle) const { cublasLtDestroy(handle); }
};
struct FreeDevice {
  void operator()(std::byte* memory) const { cudaFree(memory); }
};
struct FreePinned {
  void operator()(std::byte* memory) const { cudaFreeHost(memory); }
};
}  // namespace internal

using Stream = std::unique_ptr<CUstream_st, internal::Release>;
using Event = std::unique_ptr<CUevent_st, internal::Release>;
using Graph = std::unique_ptr<CUgraph_st, internal::Release>;
using ExecutableGraph = std::unique_ptr<CUgraphExec_st, internal::Release>;
using CublasLt = std::unique_ptr<cublasLtContext, internal::Release>;
using DeviceMemory = std::unique_ptr<std::byte, internal::FreeDevice>;
using PinnedMemory = std::unique_ptr<std::byte, internal::FreePinned>;

// A stream that does not wait for the default stream.
Status MakeStream(Stream& stream);

enum class EventUse {
  kTiming,  // elapsed times; waiting for it sleeps
  kWaiting  // order only; waiting for it sleeps
};
Status MakeEvent(EventUse use, Event& event);

Status MakeCublasLt(CublasLt& handle);

// RESOURCE_EXHAUSTED with the number of bytes, and what is free, when they cannot be had.
Status AllocateDevice(int64_t bytes, DeviceMemory& memory);
Status AllocatePinned(int64_t bytes, PinnedMemory& memory);

// Deals out parts of one piece of memory, or, without memory, only measures how much they take.
class Carver {
 public:
  explicit Carver(std::byte* memory = nullptr) : memory_(memory) {}

  // Room for `count` values, aligned to 256 bytes as cudaMalloc's. Null when measuring.
  template <typename T>
  T* Take(int64_t count) {
    const int64_t begin = used_bytes_;
    used_bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + begin);
  }
  int64_t used_bytes() const { return used_bytes_; }

 private:
  std::byte* memory_;
  int64_t used_bytes_ = 0;
};

// A named stretch of the calling thread's time, for profilers; costs a few nanoseconds when none
// listens.
class ProfilerRange {
 public:
#ifdef ATTENDANT_CUDA_NVTX
  explicit ProfilerRange(const char* name) { nvtxRangePushA(name); }
  ~ProfilerRange() { nvtxRangePop(); }
#else
  explicit ProfilerRange(const char*) {}
  ~ProfilerRange() {}
#endif
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace attendant::cuda
