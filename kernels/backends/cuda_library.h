// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_interface.h"

namespace attendant {

// The name that the CUDA library is looked for by when no path is given: first beside this program,
// then in ../lib/attendant, then wherever the system's loader looks.
inline constexpr char kCudaLibraryName[] = "libattendant_cuda.so";

// The functions of libattendant_cuda.so, loaded from `path`. Where `path` is empty, the library is
// looked for, if there is an NVIDIA driver. It stays loaded until the process ends: drivers do not
// survive being unloaded. Thread-safe.
// NOT_FOUND: there is none. UNAVAILABLE: it does not load; the message names the missing part, the
// driver for example. FAILED_PRECONDITION: it is not a CUDA library of Attendant, or was built for
// another version of the interface.
absl::StatusOr<const AttendantCudaInterface*> LoadCudaLibrary(const std::string& path);

// The status of a function of the library as an absl::Status. DEVICE_LOST becomes UNAVAILABLE.
absl::Status FromCudaStatus(const AttendantCudaStatus& status);

}  // namespace attendant
