// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_backend.h"

#include <utility>

#include "kernels/cpu/cpu_encoder.h"
#include "kernels/cpu/vector_kernels.h"

namespace attendant {
namespace {

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool HasAvx512Vnni() { return HasAvx512() && __builtin_cpu_supports("avx512vnni"); }
bool HasAvx512Bf16() { return HasAvx512Vnni() && __builtin_cpu_supports("avx512bf16"); }

// What our kernels are compiled for, and the formats whose products are faster there than f32's.
// (oneDNN dispatches on the real machine: a lower level holds only our own kernels down.)
struct IsaLevel {
  CpuIsa isa;
  bool (*available)();
  const cpu::VectorKernels& kernels;
  bool bf16;
  bool int8;
};

const IsaLevel kLevels[] = {
    // the best first
    {CpuIsa::kAvx512Bf16, HasAvx512Bf16, cpu::kAvx512Bf16Kernels, true, true},
    {CpuIsa::kAvx512Vnni, HasAvx512Vnni, cpu::kAvx512Kernels, false, true},
    {CpuIsa::kAvx512, HasAvx512, cpu::kAvx512Kernels, false, false},
    {CpuIsa::kAvx2, HasAvx2, cpu::kAvx2Kernels, false, false},
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const IsaLevel& level) : level_(level) {}

  absl::string_view name() const override { return "cpu"; }
  absl::string_view description() const override {
    return "oneDNN products on packed tokens, own vector kernels";
  }
  DType preferred_dtype() const override {
    return Supports(DType::kBf16).ok() ? DType::kBf16 : DType::kF32;
  }
  absl::Status Supports(DType dtype) const override {
    if (dtype == DType::kBf16 && !level_.bf16) {
      return absl::UnimplementedError("bf16 needs a processor with AVX512_BF16 or AMX");
    }
    if (dtype == DType::kInt8 && !level_.int8) {
      return absl::UnimplementedError("int8 needs a processor with AVX512_VNNI or AMX");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<PreparedEncoder>> Prepare(const EncoderConfig& config,
                                                           EncoderWeights weights,
                                                           DType dtype) const override {
    if (absl::Status status = Supports(dtype); !status.ok()) return status;
    return cpu::CpuEncoder::Create(config, std::move(weights), dtype, level_.kernels);
  }

 private:
  const IsaLevel& level_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const CpuBackendOptions& options) {
  for (const IsaLevel& level : kLevels) {
    const bool wanted = options.isa == CpuIsa::kAuto || options.isa == level.isa;
    if (wanted && level.available()) return std::make_unique<CpuBackend>(level);
  }
  return absl::UnavailableError(options.isa == CpuIsa::kAuto
                                    ? "the cpu back end needs a processor with AVX2 and FMA"
                                    : "this processor lacks the instructions asked for");
}

}  // namespace attendant
