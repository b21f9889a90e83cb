// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/runtime/device.h"

#include <algorithm>

#include "kernels/cuda/runtime/number_types.h"

namespace attendant::cuda {
namespace {

uint32_t Bit(DType dtype) { return uint32_t{1} << static_cast<int>(dtype); }

// A scale for each row and each channel, which fp8 needs, is what cuBLASLt offers on 9.0 only: its
// manual's table of scaling modes, and NVIDIA/CUDALibrarySamples#270 for 10.0.
uint32_t FastFormats(int32_t compute_capability) {
  if (compute_capability < 80) return 0;
  const uint32_t formats = Bit(DType::kF32) | Bit(DType::kBf16) | Bit(DType::kF16);
  return compute_capability == 90 ? formats | Bit(DType::kFp8) : formats;
}

}  // namespace

Status CountDevices(int32_t& count) {
  count = 0;
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) {
    cudaGetLastError();
    return Status::Error(ATTENDANT_CUDA_UNAVAILABLE,
                         "no CUDA driver: libcuda.so.1 is missing or does not load");
  }
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaErrorInsufficientDriver) {
    cudaGetLastError();
    return Status::Error(ATTENDANT_CUDA_UNAVAILABLE,
                         "the CUDA driver is too old: it has %d.%d, CUDA %d.%d is needed",
                         version / 1000, version % 1000 / 10, CUDART_VERSION / 1000,
                         CUDART_VERSION % 1000 / 10);
  }
  ATTENDANT_CUDA_TRY(Check(error, "looking for CUDA devices"));
  if (devices <= 0) {
    return Status::Error(ATTENDANT_CUDA_UNAVAILABLE, "the CUDA driver sees no device");
  }
  count = devices;
  return {};
}

Status DescribeDevice(int32_t device, AttendantCudaDevice& description) {
  cudaDeviceProp properties;
  ATTENDANT_CUDA_TRY(
      Check(cudaGetDeviceProperties(&properties, device), "describing a CUDA device"));
  description = {};
  // Cut where it is too long; what follows is zeros.
  std::copy_n(properties.name, sizeof(description.name) - 1, description.name);
  description.compute_capability = 10 * properties.major + properties.minor;
  description.multiprocessors = properties.multiProcessorCount;
  description.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  description.dtypes = FastFormats(description.compute_capability);
  return {};
}

Status ReadDeviceMemory(int32_t device, int64_t& free_bytes, int64_t& total_bytes) {
  ATTENDANT_CUDA_TRY(UseDevice(device));
  size_t free_now = 0, total = 0;
  ATTENDANT_CUDA_TRY(Check(cudaMemGetInfo(&free_now, &total), "reading the device's memory"));
  free_bytes = static_cast<int64_t>(free_now);
  total_bytes = static_cast<int64_t>(total);
  return {};
}

Status UseDevice(int device) { return Check(cudaSetDevice(device), "using a CUDA device"); }

Status CheckDType(int device, DType dtype) {
  AttendantCudaDevice description;
  ATTENDANT_CUDA_TRY(DescribeDevice(device, description));
  if ((description.dtypes & Bit(dtype)) != 0) return {};
  return Status::Error(ATTENDANT_CUDA_UNIMPLEMENTED, "%s, of compute capability %d.%d, has no %s",
                       description.name, description.compute_capability / 10,
                       description.compute_capability % 10, DTypeName(dtype));
}

}  // namespace attendant::cuda
