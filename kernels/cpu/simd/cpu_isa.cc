// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd/cpu_isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attendant {
namespace {

// Bits of CPUID (Intel SDM, volume 2A) and of XCR0 (volume 1, 13.3).
constexpr uint32_t kFma = 1u << 12;      // leaf 1, ecx
constexpr uint32_t kOsXsave = 1u << 27;  // leaf 1, ecx
constexpr uint32_t kAvx2 = 1u << 5;      // leaf 7, ebx, as the next four
constexpr uint32_t kAvx512F = 1u << 16;
constexpr uint32_t kAvx512Dq = 1u << 17;
constexpr uint32_t kAvx512Bw = 1u << 30;
constexpr uint32_t kAvx512Vl = 1u << 31;
constexpr uint32_t kAvx512Vnni = 1u << 11;  // leaf 7, ecx
constexpr uint32_t kAmxBf16 = 1u << 22;     // leaf 7, edx, as the next two
constexpr uint32_t kAmxTile = 1u << 24;
constexpr uint32_t kAmxInt8 = 1u << 25;
constexpr uint32_t kAvx512Bf16 = 1u << 5;  // leaf 7, subleaf 1, eax
constexpr uint64_t kXcr0Avx = 0x6;         // xmm, ymm
constexpr uint64_t kXcr0Avx512 = 0xe6;     // and opmask, zmm
constexpr uint64_t kXcr0Amx = 0x60000;     // tile configuration, tile data

bool Has(uint64_t word, uint64_t bits) { return (word & bits) == bits; }

// What each level needs beyond the one before it.
struct Level {
  CpuIsa isa;
  const char* name;
  const char* needs;
  bool (*available)(const CpuIdWords& words);
};

constexpr Level kLevels[] = {
    {CpuIsa::kAvx2, "avx2", "AVX2 and FMA",
     [](const CpuIdWords& words) {
       return Has(words.leaf1_ecx, kFma | kOsXsave) && Has(words.xcr0, kXcr0Avx) &&
              Has(words.leaf7_ebx, kAvx2);
     }},
    {CpuIsa::kAvx512, "avx512", "AVX-512 F, BW, DQ and VL",
     [](const CpuIdWords& words) {
       return Has(words.xcr0, kXcr0Avx512) &&
              Has(words.leaf7_ebx, kAvx512F | kAvx512Bw | kAvx512Dq | kAvx512Vl);
     }},
    {CpuIsa::kAvx512Vnni, "avx512_vnni", "AVX512_VNNI",
     [](const CpuIdWords& words) { return Has(words.leaf7_ecx, kAvx512Vnni); }},
    {CpuIsa::kAvx512Bf16, "avx512_bf16", "AVX512_BF16",
     [](const CpuIdWords& words) { return Has(words.leaf7_1_eax, kAvx512Bf16); }},
    {CpuIsa::kAmx, "amx", "AMX with TILE, BF16 and INT8, and Linux's permission to use it",
     [](const CpuIdWords& words) {
       return Has(words.leaf7_edx, kAmxTile | kAmxBf16 | kAmxInt8) && Has(words.xcr0, kXcr0Amx) &&
              words.tile_data_allowed;
     }},
};

// Tiles are 8 KB more for every thread's context, so Linux (5.16 and newer) wants to be asked.
bool AskForTiles() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

uint64_t ReadXcr0() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

}  // namespace

absl::string_view CpuIsaName(CpuIsa isa) {
  for (const Level& level : kLevels) {
    if (level.isa == isa) return level.name;
  }
  return "auto";
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

CpuIdWords ReadCpuIdWords() {
  CpuIdWords words;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) words.leaf1_ecx = c;
  if (Has(words.leaf1_ecx, kOsXsave)) words.xcr0 = ReadXcr0();
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    words.leaf7_ebx = b;
    words.leaf7_ecx = c;
    words.leaf7_edx = d;
    const uint32_t subleaves = a;
    if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) words.leaf7_1_eax = a;
  }
  words.tile_data_allowed = Has(words.leaf7_edx, kAmxTile) && AskForTiles();
  return words;
}

absl::StatusOr<CpuIsa> ChooseCpuIsa(CpuIsa wanted, const CpuIdWords& words) {
  CpuIsa best = CpuIsa::kAuto;
  for (const Level& level : kLevels) {
    if (!level.available(words)) {
      if (wanted != CpuIsa::kAuto) {
        return absl::UnavailableError(absl::StrCat(
            "this machine cannot compute with ", CpuIsaName(wanted), ": it lacks ", level.needs,
            best == CpuIsa::kAuto ? "" : absl::StrCat("; its best is ", CpuIsaName(best))));
      }
      break;
    }
    best = level.isa;
    if (best == wanted) return best;
  }
  if (best != CpuIsa::kAuto) return best;
  return absl::UnavailableError(
      absl::StrCat("the cpu back end needs a processor with ", kLevels[0].needs));
}

}  // namespace attendant
