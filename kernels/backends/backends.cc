// SPDX-License-Identifier: Apache-2.0
#include "kernels/backends/backends.h"

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/cpu_isa.h"
#include "kernels/reference/reference_backend.h"

namespace attendant {

namespace {

absl::StatusOr<std::unique_ptr<Backend>> MakeLimitedCpuBackend(const BackendOptions& options) {
  const absl::StatusOr<CpuIsa> isa = ParseCpuIsa(options.cpu_isa);
  if (!isa.ok()) return isa.status();
  auto backend = MakeCpuBackend({.isa = *isa, .load_threads = options.load_threads});
  if (!backend.ok()) return backend;
  if (absl::Status status = LimitOneDnn(*isa); !status.ok()) return status;
  return backend;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name,
                                                     const BackendOptions& options) {
  if (name == "cpu" || name == "auto") return MakeLimitedCpuBackend(options);
  if (name == "reference") return MakeReferenceBackend();
  return absl::InvalidArgumentError(
      absl::StrCat("backend '", name, "' is unknown: give auto, cpu or reference"));
}

absl::StatusOr<DType> ChooseDType(absl::string_view name, const Backend& backend) {
  if (name == "auto") return backend.preferred_dtype();
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kInt8}) {
    if (name == DTypeName(dtype)) return dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("dtype '", name, "' is unknown: give auto, f32, bf16 or int8"));
}

}  // namespace attendant
