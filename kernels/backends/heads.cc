// SPDX-License-Identifier: Apache-2.0
#include "kernels/backends/heads.h"

#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/heads/masked_lm_head.h"
#include "kernels/cpu/heads/token_rows_head.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant {
namespace {

absl::StatusOr<cpu::HeadCompute> ChooseCompute(const PreparedEncoder& encoder) {
  const cpu::IsaLevel* level = encoder.cpu_level();
  if (level == nullptr) {
    ATTENDANT_ASSIGN_OR_RETURN(level, cpu::FindIsaLevel(cpu::CpuIsa::kAuto));
  }
  const bool bf16 = level->bf16 && encoder.info().dtype != DType::kF32;
  return cpu::HeadCompute{*level, bf16 ? DType::kBf16 : DType::kF32};
}

absl::StatusOr<std::unique_ptr<Head>> Make(const TokenHead& head, const PreparedEncoder& encoder) {
  ATTENDANT_ASSIGN_OR_RETURN(const cpu::HeadCompute compute, ChooseCompute(encoder));
  switch (head.kind) {
    case TokenHeadKind::kMaskedLm:
      return cpu::MakeMaskedLmHead(compute, head);
    case TokenHeadKind::kTokenLabels:
      return cpu::MakeTokenLabelsHead(compute, head);
    case TokenHeadKind::kTokenWeights:
      return cpu::MakeTokenWeightsHead(compute, head);
    case TokenHeadKind::kVectors:
      return cpu::MakeVectorsHead(compute, head);
  }
  return absl::InternalError("an unknown kind of head");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Head>> MakeHead(const TokenHead& head,
                                               const PreparedEncoder& encoder) {
  try {
    return Make(head, encoder);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the packed weights of a head do not fit in memory");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("cannot prepare a head: ", error.what()));
  }
}

}  // namespace attendant
