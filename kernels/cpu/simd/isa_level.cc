// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/isa_level.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "kernels/core/check.h"
#include "kernels/core/status_macros.h"

namespace attendant::cpu {
namespace {

constexpr size_t kNumLevels = 5;

VectorKernels Choose(VectorKernels kernels, MatmulChoice matmul) {
  if (matmul == MatmulChoice::kAuto) return kernels;
  for (MatmulKernels* of : {&kernels.f32_matmul, &kernels.bf16_matmul, &kernels.int8_matmul}) {
    of->prefers_onednn = matmul == MatmulChoice::kOneDnn;
  }
  return kernels;
}

// All levels with one choice.
class Levels {
 public:
  explicit Levels(MatmulChoice matmul)
      : kernels_{Choose(kAvx2Kernels, matmul), Choose(kAvx512Kernels, matmul),
                 Choose(kAvx512VnniKernels, matmul), Choose(kAvx512Bf16Kernels, matmul),
                 Choose(kAmxKernels, matmul)},
        levels_{{{CpuIsa::kAvx2, matmul, kernels_[0], false, false},
                 {CpuIsa::kAvx512, matmul, kernels_[1], false, false},
                 {CpuIsa::kAvx512Vnni, matmul, kernels_[2], false, true},
                 {CpuIsa::kAvx512Bf16, matmul, kernels_[3], true, true},
                 {CpuIsa::kAmx, matmul, kernels_[4], true, true}}} {}
  Levels(const Levels&) = delete;
  Levels& operator=(const Levels&) = delete;

  const IsaLevel& Find(CpuIsa isa) const {
    for (const IsaLevel& level : levels_) {
      if (level.isa == isa) return level;
    }
    ATTENDANT_CHECK(false);
  }

 private:
  const std::array<VectorKernels, kNumLevels> kernels_;
  const std::array<IsaLevel, kNumLevels> levels_;
};

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
  static const Levels kLevels[] = {Levels(MatmulChoice::kAuto), Levels(MatmulChoice::kOneDnn),
                                   Levels(MatmulChoice::kTiles)};
  ATTENDANT_ASSIGN_OR_RETURN(const CpuIsa chosen, ChooseCpuIsa(isa, ReadCpuIdWords()));
  return &kLevels[static_cast<size_t>(matmul)].Find(chosen);
}

}  // namespace attendant::cpu
