// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/backend.h"

namespace attendant {

struct CudaBackendOptions {
  std::string library;       // path of libattendant_cuda.so; empty: LoadCudaLibrary finds it
  std::vector<int> devices;  // as CUDA counts them; empty: all
};

// A list as "0,2", or "all", which is an empty one. INVALID_ARGUMENT for anything else.
absl::StatusOr<std::vector<int>> ParseCudaDevices(absl::string_view list);

// The back end over NVIDIA GPUs, which lies in a library of its own (kernels/cuda). A model's
// weights go to each device; its sessions are shared out among them, two for each by default, so
// that one copies while the other computes.
// NOT_FOUND, UNAVAILABLE or FAILED_PRECONDITION, saying why in one line, when the library, the
// driver or a device cannot be had; INVALID_ARGUMENT for a device number that is not there.
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const CudaBackendOptions& options);

}  // namespace attendant
