// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/runtime/status.h"

#include <cstdarg>
#include <cstdio>

namespace attendant::cuda {
namespace {

int32_t CodeOf(cudaError_t error) {
  if (LosesDevice(error)) return ATTENDANT_CUDA_DEVICE_LOST;
  switch (error) {
    case cudaErrorMemoryAllocation:
      return ATTENDANT_CUDA_RESOURCE_EXHAUSTED;
    case cudaErrorInvalidDevice:
      return ATTENDANT_CUDA_INVALID_ARGUMENT;
    case cudaErrorNoKernelImageForDevice:
      return ATTENDANT_CUDA_UNIMPLEMENTED;
    case cudaErrorInitializationError:
    case cudaErrorStubLibrary:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoDevice:
    case cudaErrorOperatingSystem:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return ATTENDANT_CUDA_UNAVAILABLE;
    default:
      return ATTENDANT_CUDA_INTERNAL;
  }
}

}  // namespace

Status Status::Error(int32_t code, const char* format, ...) {
  Status status;
  status.status_.code = code;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(status.status_.message, sizeof(status.status_.message), format, arguments);
  va_end(arguments);
  return status;
}

// The driver's documentation says of each of these errors that "the only way out is to end the
// process", or that the context "cannot be used".
bool LosesDevice(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

Status Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();
  return Status::Error(CodeOf(error), "%s: %s (%s)", what, cudaGetErrorString(error),
                       cudaGetErrorName(error));
}

// cuBLASLt says only that something failed; what, CUDA remembers.
Status Check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  if (const cudaError_t error = cudaPeekAtLastError(); LosesDevice(error)) {
    return Check(error, what);
  }
  cudaGetLastError();
  return Status::Error(status == CUBLAS_STATUS_ALLOC_FAILED ? ATTENDANT_CUDA_RESOURCE_EXHAUSTED
                                                            : ATTENDANT_CUDA_INTERNAL,
                       "%s: cuBLASLt answers %d", what, static_cast<int>(status));
}

}  // namespace attendant::cuda
