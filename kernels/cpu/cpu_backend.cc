// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_encoder.h"
#include "kernels/cpu/vector_kernels.h"

namespace attendant {
namespace {

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

// What vector_kernels_avx512.cc is compiled for.
bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

// Whether oneDNN has bf16 and int8 products that are faster than f32's. It dispatches on the real
// machine, so a lower `isa` keeps only our own kernels down.
bool HasBf16(CpuIsa isa) { return isa == CpuIsa::kAvx512 && __builtin_cpu_supports("avx512bf16"); }
bool HasVnni(CpuIsa isa) { return isa == CpuIsa::kAvx512 && __builtin_cpu_supports("avx512vnni"); }

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(CpuIsa isa)
      : isa_(isa), kernels_(isa == CpuIsa::kAvx512 ? cpu::kAvx512Kernels : cpu::kAvx2Kernels) {}

  absl::string_view name() const override { return "cpu"; }
  absl::string_view description() const override {
    return "oneDNN products on packed tokens, own vector kernels";
  }
  DType preferred_dtype() const override {
    return Supports(DType::kBf16).ok() ? DType::kBf16 : DType::kF32;
  }
  absl::Status Supports(DType dtype) const override {
    if (dtype == DType::kBf16 && !HasBf16(isa_)) {
      return absl::UnimplementedError("bf16 needs AVX-512 with BF16 or AMX");
    }
    if (dtype == DType::kInt8 && !HasVnni(isa_)) {
      return absl::UnimplementedError("int8 needs AVX-512 with VNNI");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<PreparedEncoder>> Prepare(const EncoderConfig& config,
                                                           EncoderWeights weights,
                                                           DType dtype) const override {
    if (absl::Status status = Supports(dtype); !status.ok()) return status;
    return cpu::CpuEncoder::Create(config, std::move(weights), dtype, kernels_);
  }

 private:
  CpuIsa isa_;
  const cpu::VectorKernels& kernels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const CpuBackendOptions& options) {
  if (!HasAvx2()) {
    return absl::UnavailableError("the cpu back end needs a processor with AVX2 and FMA");
  }
  if (options.isa == CpuIsa::kAvx512 && !HasAvx512()) {
    return absl::UnavailableError("this processor has no AVX-512");
  }
  const bool avx512 = options.isa != CpuIsa::kAvx2 && HasAvx512();
  return std::make_unique<CpuBackend>(avx512 ? CpuIsa::kAvx512 : CpuIsa::kAvx2);
}

}  // namespace attendant
