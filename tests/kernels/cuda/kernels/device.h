// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <vector>

#include "kernels/cuda/runtime/number_types.h"

// Helpers of the kernels' tests, which run on the emulated device and, as another program, on a
// real one.
namespace attendant::cuda {

// Memory that kernels may be given pointers into. The emulated device's memory is ordinary memory,
// exactly as long as promised, so that AddressSanitizer sees what is read or written beyond.
#ifdef ATTENDANT_CUDA_EMULATED
template <typename T>
using DeviceVector = std::vector<T>;
#else
template <typename T>
struct ManagedAllocator {
  using value_type = T;
  ManagedAllocator() = default;
  template <typename U>
  explicit ManagedAllocator(const ManagedAllocator<U>&) {}
  T* allocate(size_t count) {
    void* memory = nullptr;
    if (cudaMallocManaged(&memory, count * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { cudaFree(memory); }
  friend bool operator==(const ManagedAllocator&, const ManagedAllocator&) { return true; }
};
template <typename T>
using DeviceVector = std::vector<T, ManagedAllocator<T>>;
#endif

// Numbers in a format's storage.
class DeviceValues {
 public:
  DeviceValues(DType dtype, const DeviceVector<float>& values)
      : dtype_(dtype), bytes_(values.size() * static_cast<size_t>(StateBytes(dtype))) {
    for (size_t i = 0; i < values.size(); ++i) Set(i, values[i]);
  }
  DeviceValues(DType dtype, size_t count, float fill)
      : DeviceValues(dtype, DeviceVector<float>(count, fill)) {}

  void* data() { return bytes_.data(); }
  void* at(int64_t index) { return bytes_.data() + index * StateBytes(dtype_); }
  size_t size() const { return bytes_.size() / static_cast<size_t>(StateBytes(dtype_)); }
  const DeviceVector<std::byte>& bytes() const { return bytes_; }

  float Get(size_t index) const {
    if (StateDType(dtype_) == DType::kBf16) return ToFloat(Load<Bf16>(index));
    if (dtype_ == DType::kF16) return ToFloat(Load<F16>(index));
    return Load<float>(index);
  }
  void Set(size_t index, float value) {
    if (StateDType(dtype_) == DType::kBf16) {
      Store(index, ToBf16(value));
    } else if (dtype_ == DType::kF16) {
      Store(index, ToF16(value));
    } else {
      Store(index, value);
    }
  }

 private:
  template <typename T>
  T Load(size_t index) const {
    T value;
    std::memcpy(&value, bytes_.data() + index * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  void Store(size_t index, T value) {
    std::memcpy(bytes_.data() + index * sizeof(T), &value, sizeof(T));
  }

  DType dtype_;
  DeviceVector<std::byte> bytes_;
};

// Half a unit in the last place, relative: what rounding once to the format costs.
inline double RoundingOf(DType dtype) {
  if (StateDType(dtype) == DType::kBf16) return 0x1p-8;
  return dtype == DType::kF16 ? 0x1p-11 : 0x1p-24;
}

inline DeviceVector<float> RandomValues(size_t count, uint32_t seed, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  DeviceVector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Runs it again, with the emulated device's warps in either order and copies early and late; a real
// device has orders of its own.
template <typename Run>
void InOtherOrders(Run run) {
#ifdef ATTENDANT_CUDA_EMULATED
  for (const cuda_emulation::KernelOptions options :
       {cuda_emulation::KernelOptions{.descending = true},
        cuda_emulation::KernelOptions{.early_copies = true},
        cuda_emulation::KernelOptions{.descending = true, .early_copies = true}}) {
    cuda_emulation::SetKernelOptions(options);
    run();
  }
  cuda_emulation::SetKernelOptions({});
#else
  run();
#endif
}

// Calls `run` on an emulated device that has matmuls of groups (group_ptx.cuh). A real device has
// them or not.
template <typename Run>
void OnGroupMatmuls([[maybe_unused]] Run run) {
#ifdef ATTENDANT_CUDA_EMULATED
  for (const bool early : {false, true}) {
    cuda_emulation::SetKernelOptions(
        {.descending = early, .early_copies = early, .group_matmuls = true});
    run();
  }
  cuda_emulation::SetKernelOptions({});
#endif
}

class Stream {
 public:
  Stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  ~Stream() { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }
  operator cudaStream_t() const { return stream_; }
  void Wait() const { ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace attendant::cuda
