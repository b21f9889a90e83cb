// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/cpu_isa.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/simd/cpu_id_bits.h"

namespace attendant::cpu {
namespace {

// A level, and its needs beyond the level that it is built on.
struct Level {
  CpuIsa isa;
  CpuIsa base;
  const char* name;
  const char* needs;
  bool (*available)(const CpuIdWords& words);
};

constexpr Level kLevels[] = {
    {CpuIsa::kAvx2, CpuIsa::kAuto, "avx2", "AVX2 and FMA",
     [](const CpuIdWords& words) {
       return cpuid::Has(words.leaf1_ecx, cpuid::kFma | cpuid::kOsXsave) &&
              cpuid::Has(words.xcr0, cpuid::kXcr0Avx) && cpuid::Has(words.leaf7_ebx, cpuid::kAvx2);
     }},
    {CpuIsa::kAvx2Vnni, CpuIsa::kAvx2, "avx2_vnni", "AVX-VNNI",
     [](const CpuIdWords& words) { return cpuid::Has(words.leaf7_1_eax, cpuid::kAvxVnni); }},
    {CpuIsa::kAvx512, CpuIsa::kAvx2, "avx512", "AVX-512 F, BW, DQ and VL",
     [](const CpuIdWords& words) {
       return cpuid::Has(words.xcr0, cpuid::kXcr0Avx512) &&
              cpuid::Has(words.leaf7_ebx,
                         cpuid::kAvx512F | cpuid::kAvx512Bw | cpuid::kAvx512Dq | cpuid::kAvx512Vl);
     }},
    {CpuIsa::kAvx512Vnni, CpuIsa::kAvx512, "avx512_vnni", "AVX512_VNNI",
     [](const CpuIdWords& words) { return cpuid::Has(words.leaf7_ecx, cpuid::kAvx512Vnni); }},
    {CpuIsa::kAvx512Bf16, CpuIsa::kAvx512Vnni, "avx512_bf16", "AVX512_BF16",
     [](const CpuIdWords& words) { return cpuid::Has(words.leaf7_1_eax, cpuid::kAvx512Bf16); }},
    {CpuIsa::kAmx, CpuIsa::kAvx512Bf16, "amx",
     "AMX with TILE, BF16 and INT8, and Linux's permission to use it",
     [](const CpuIdWords& words) {
       return cpuid::Has(words.leaf7_edx, cpuid::kAmxTile | cpuid::kAmxBf16 | cpuid::kAmxInt8) &&
              cpuid::Has(words.xcr0, cpuid::kXcr0Amx) && words.tile_data_allowed;
     }},
};

const Level* Find(CpuIsa isa) {
  for (const Level& level : kLevels) {
    if (level.isa == isa) return &level;
  }
  return nullptr;
}

// The lowest level that the words lack of `isa` and those that it is built on; null: they have all.
const Level* FirstMissing(CpuIsa isa, const CpuIdWords& words) {
  const Level* level = Find(isa);
  if (level == nullptr) return nullptr;
  if (const Level* missing = FirstMissing(level->base, words)) return missing;
  return level->available(words) ? nullptr : level;
}

CpuIsa BestOf(const CpuIdWords& words) {
  CpuIsa best = CpuIsa::kAuto;
  for (const CpuIsa isa : kCpuIsaLevels) {
    if (FirstMissing(isa, words) == nullptr) best = isa;
  }
  return best;
}

}  // namespace

absl::string_view CpuIsaName(CpuIsa isa) {
  const Level* level = Find(isa);
  return level == nullptr ? "auto" : level->name;
}

absl::StatusOr<CpuIsa> ParseCpuIsa(absl::string_view name) {
  if (name == "auto") return CpuIsa::kAuto;
  std::string names = "auto";
  for (const Level& level : kLevels) {
    if (name == level.name) return level.isa;
    absl::StrAppend(&names, ", ", level.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("cpu_isa '", name, "' is unknown: it is one of ", names));
}

absl::StatusOr<CpuIsa> ChooseCpuIsa(CpuIsa wanted, const CpuIdWords& words) {
  const CpuIsa best = BestOf(words);
  if (wanted == CpuIsa::kAuto && best == CpuIsa::kAuto) {
    return absl::UnavailableError(
        absl::StrCat("the cpu back end needs a processor with ", kLevels[0].needs));
  }
  if (wanted == CpuIsa::kAuto) return best;
  if (const Level* missing = FirstMissing(wanted, words)) {
    return absl::UnavailableError(absl::StrCat(
        "this machine cannot compute with ", CpuIsaName(wanted), ": it lacks ", missing->needs,
        best == CpuIsa::kAuto ? "" : absl::StrCat("; its best is ", CpuIsaName(best))));
  }
  return wanted;
}

}  // namespace attendant::cpu
