// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/encoder/cpu_encoder.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(const cpu::IsaLevel& level, int load_threads)
      : level_(level), load_threads_(load_threads) {}

  absl::string_view name() const override { return "cpu"; }
  DType preferred_dtype() const override {
    return Supports(DType::kBf16).ok() ? DType::kBf16 : DType::kF32;
  }
  absl::Status Supports(DType dtype) const override {
    if (dtype == DType::kF16 || dtype == DType::kFp8) {
      return absl::UnimplementedError(
          absl::StrCat("the cpu back end has no ", DTypeName(dtype), ": use f32, bf16 or int8"));
    }
    if (dtype == DType::kBf16 && !level_.bf16) {
      return absl::UnimplementedError(
          absl::StrCat("bf16 is not faster than f32 without AVX512_BF16 or AMX, and cpu_isa is ",
                       cpu::CpuIsaName(level_.isa), ": use f32 or int8"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<PreparedEncoder>> Prepare(const EncoderConfig& config,
                                                           EncoderWeights weights,
                                                           DType dtype) const override {
    ATTENDANT_RETURN_IF_ERROR(Supports(dtype));
    return cpu::CpuEncoder::Create(config, std::move(weights), {dtype, level_, load_threads_});
  }

 private:
  const cpu::IsaLevel& level_;
  const int load_threads_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const CpuBackendOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(const cpu::IsaLevel* level,
                             cpu::FindIsaLevel(options.isa, options.matmul));
  return std::make_unique<CpuBackend>(*level, options.load_threads);
}

}  // namespace attendant
