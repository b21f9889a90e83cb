// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_encoder.h"
#include "kernels/cpu/vector_kernels.h"

namespace attendant {
namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const cpu::VectorKernels& kernels) : kernels_(kernels) {}

  absl::string_view name() const override { return "cpu"; }
  absl::string_view description() const override {
    return "oneDNN products on packed tokens, own vector kernels";
  }
  DType preferred_dtype() const override { return DType::kF32; }

  absl::StatusOr<std::unique_ptr<PreparedEncoder>> Prepare(const EncoderConfig& config,
                                                           EncoderWeights weights,
                                                           DType dtype) const override {
    if (dtype != DType::kF32) {
      return absl::UnimplementedError(
          absl::StrCat("the cpu back end computes in f32, not in ", DTypeName(dtype)));
    }
    return cpu::CpuEncoder::Create(config, std::move(weights), kernels_);
  }

 private:
  const cpu::VectorKernels& kernels_;
};

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

// What vector_kernels_avx512.cc is compiled for.
bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const CpuBackendOptions& options) {
  if (!HasAvx2()) {
    return absl::UnavailableError("the cpu back end needs a processor with AVX2 and FMA");
  }
  if (options.isa == CpuIsa::kAvx512 && !HasAvx512()) {
    return absl::UnavailableError("this processor has no AVX-512");
  }
  const bool avx512 = options.isa != CpuIsa::kAvx2 && HasAvx512();
  return std::make_unique<CpuBackend>(avx512 ? cpu::kAvx512Kernels : cpu::kAvx2Kernels);
}

}  // namespace attendant
