// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/backend.h"

namespace attendant {

struct BackendOptions {
  // The highest instruction set to compute with on the CPU (cpu/simd/cpu_isa.h has the names). Any
  // but "auto" also holds down oneDNN, for the whole process and whatever the back end.
  std::string cpu_isa = "auto";
  // The implementation of matmuls on the CPU (cpu/simd/isa_level.h has the names).
  std::string matmul = "auto";
  int load_threads = 1;        // that Prepare may use
  std::string cuda_library{};  // path of libattendant_cuda.so; empty: cuda_library.h says where
  std::string cuda_devices = "all";  // or a list as "0,2"
};

// The back end called `name`: "cpu" (oneDNN), "cuda" (NVIDIA GPUs), "reference" (plain loops, slow:
// for checking the others), or "auto": ChooseBackend's for any dtype. INVALID_ARGUMENT for any
// other name, cpu_isa, matmul or cuda_devices; NOT_FOUND, UNAVAILABLE or FAILED_PRECONDITION when
// it cannot run on this machine, the last also when the process computes at another level.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name,
                                                     const BackendOptions& options = {});

struct BackendChoice {
  std::string name;    // for MakeBackend
  std::string reason;  // one line; empty when nothing was left open
};

// The back end that `name` stands for: itself; for "auto" cuda where it is available and has
// `dtype` ("auto": any format), else cpu.
BackendChoice ChooseBackend(absl::string_view name, absl::string_view dtype,
                            const BackendOptions& options);

// The number format that a user's word stands for: a DTypeName, or "auto", the fastest format of
// `backend` whose answers stay within rounding of f32's. INVALID_ARGUMENT for any other word.
absl::StatusOr<DType> ChooseDType(absl::string_view name, const Backend& backend);

}  // namespace attendant
