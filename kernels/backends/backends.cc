// SPDX-License-Identifier: Apache-2.0
#include "kernels/backends/backends.h"

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"

namespace attendant {

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name) {
  if (name == "cpu" || name == "auto") return MakeCpuBackend();
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
