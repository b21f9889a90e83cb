// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/isa_level.h"

#include <array>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "kernels/core/check.h"
#include "kernels/core/status_macros.h"

namespace attendant::cpu {
namespace {

std::array<IsaLevel, std::size(kCpuIsaLevels)> LevelsWith(MatmulChoice matmul) {
  return {{{CpuIsa::kAvx2, matmul, kAvx2Kernels, false},
           {CpuIsa::kAvx2Vnni, matmul, kAvx2VnniKernels, false},
           {CpuIsa::kAvx512, matmul, kAvx512Kernels, false},
           {CpuIsa::kAvx512Vnni, matmul, kAvx512VnniKernels, false},
           {CpuIsa::kAvx512Bf16, matmul, kAvx512Bf16Kernels, true},
           {CpuIsa::kAmx, matmul, kAmxKernels, true}}};
}

}  // namespace

absl::string_view MatmulChoiceName(MatmulChoice choice) {
  switch (choice) {
    case MatmulChoice::kOneDnn:
      return "onednn";
    case MatmulChoice::kTiles:
      return "tiles";
    case MatmulChoice::kAuto:
      break;
  }
  return "auto";
}

absl::StatusOr<MatmulChoice> ParseMatmulChoice(absl::string_view name) {
  for (const auto choice : {MatmulChoice::kAuto, MatmulChoice::kOneDnn, MatmulChoice::kTiles}) {
    if (name == MatmulChoiceName(choice)) return choice;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("matmul '", name, "' is unknown: give auto, onednn or tiles"));
}

absl::StatusOr<const IsaLevel*> FindIsaLevel(CpuIsa isa, MatmulChoice matmul) {
  static const std::array<IsaLevel, std::size(kCpuIsaLevels)> kLevels[] = {
      LevelsWith(MatmulChoice::kAuto), LevelsWith(MatmulChoice::kOneDnn),
      LevelsWith(MatmulChoice::kTiles)};
  ATTENDANT_ASSIGN_OR_RETURN(const CpuIsa chosen, ChooseCpuIsa(isa, ReadCpuIdWords()));
  for (const IsaLevel& level : kLevels[static_cast<size_t>(matmul)]) {
    if (level.isa == chosen) return &level;
  }
  ATTENDANT_CHECK(false);
}

}  // namespace attendant::cpu
