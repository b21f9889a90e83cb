// SPDX-License-Identifier: Apache-2.0
#include "kernels/backends/backends.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/backends/cuda_backend.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/matmul/onednn_matmul.h"
#include "kernels/cpu/simd/cpu_isa.h"
#include "kernels/cpu/simd/isa_level.h"
#include "kernels/reference/reference_backend.h"

namespace attendant {

namespace {

absl::StatusOr<std::unique_ptr<Backend>> MakeChosenCudaBackend(const BackendOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<int> devices,
                             ParseCudaDevices(options.cuda_devices));
  return MakeCudaBackend({.library = options.cuda_library, .devices = devices});
}

// OK when cuda can be had and has what `dtype` stands for.
absl::Status CheckCuda(absl::string_view dtype, const BackendOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> cuda, MakeChosenCudaBackend(options));
  const absl::StatusOr<DType> chosen = ChooseDType(dtype, *cuda);
  return chosen.ok() ? cuda->Supports(*chosen) : chosen.status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name,
                                                     const BackendOptions& options) {
  if (name == "auto") return MakeBackend(ChooseBackend(name, "auto", options).name, options);
  ATTENDANT_ASSIGN_OR_RETURN(const cpu::CpuIsa isa, cpu::ParseCpuIsa(options.cpu_isa));
  ATTENDANT_ASSIGN_OR_RETURN(const cpu::MatmulChoice matmul,
                             cpu::ParseMatmulChoice(options.matmul));
  // For every back end: attention modules multiply with oneDNN beside a GPU, too.
  ATTENDANT_RETURN_IF_ERROR(cpu::LimitOneDnn(isa));
  if (name == "cpu") {
    return MakeCpuBackend({.isa = isa, .matmul = matmul, .load_threads = options.load_threads});
  }
  if (name == "cuda") return MakeChosenCudaBackend(options);
  if (name == "reference") return MakeReferenceBackend();
  return absl::InvalidArgumentError(
      absl::StrCat("backend '", name, "' is unknown: give auto, cpu, cuda or reference"));
}

BackendChoice ChooseBackend(absl::string_view name, absl::string_view dtype,
                            const BackendOptions& options) {
  if (name != "auto") return {.name = std::string(name), .reason = ""};
  const absl::Status cuda = CheckCuda(dtype, options);
  if (cuda.ok()) return {.name = "cuda", .reason = "computing on the GPU"};
  return {.name = "cpu", .reason = absl::StrCat("computing on the CPU: ", cuda.message())};
}

absl::StatusOr<DType> ChooseDType(absl::string_view name, const Backend& backend) {
  if (name == "auto") return backend.preferred_dtype();
  std::string names = "auto";
  for (const DType dtype : kDTypes) {
    if (name == DTypeName(dtype)) return dtype;
    absl::StrAppend(&names, ", ", DTypeName(dtype));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("dtype '", name, "' is unknown: give one of ", names));
}

}  // namespace attendant
