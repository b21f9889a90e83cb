// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/cuda_interface.h"

namespace attendant::cuda {

// The result of a function of this library: a code of cuda_interface.h and a sentence. It owns no
// memory, so that it can be made when there is none.
class [[nodiscard]] Status {
 public:
  Status() = default;  // all is well
  // The message is formatted as by printf and cut at its field's end.
  static Status Error(int32_t code, const char* format, ...) __attribute__((format(printf, 2, 3)));

  bool ok() const { return status_.code == ATTENDANT_CUDA_OK; }
  int32_t code() const { return status_.code; }
  const char* message() const { return status_.message; }
  const AttendantCudaStatus& for_caller() const { return status_; }

 private:
  AttendantCudaStatus status_{};
};

// OK, or what the error means to a caller: `what` was being done. Takes the error off the calling
// thread's cudaGetLastError, so that no later call reports it.
Status Check(cudaError_t error, const char* what);
Status Check(cublasStatus_t status, const char* what);

// True if the device is unusable after this error for the rest of the process.
bool LosesDevice(cudaError_t error);

#define ATTENDANT_CUDA_TRY(expression)                                             \
  do {                                                                             \
    if (::attendant::cuda::Status tried = (expression); !tried.ok()) return tried; \
  } while (false)

}  // namespace attendant::cuda
