// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::cpu {

// A level of instructions, from the slowest to the fastest. Each from kAvx512 on has everything of
// the one before it, but for kAvx512 itself: it and kAvx2Vnni each have everything of kAvx2.
enum class CpuIsa : uint8_t {
  kAuto,      // the best of this machine
  kAvx2,      // and FMA
  kAvx2Vnni,  // AVX-VNNI: of processors for laptops and desktops, and of Xeons with E-cores
  kAvx512,
  kAvx512Vnni,
  kAvx512Bf16,
  kAmx,  // attention in bf16, and matmuls in bf16 and int8
};

// All but kAuto.
inline constexpr CpuIsa kCpuIsaLevels[] = {CpuIsa::kAvx2,       CpuIsa::kAvx2Vnni,
                                           CpuIsa::kAvx512,     CpuIsa::kAvx512Vnni,
                                           CpuIsa::kAvx512Bf16, CpuIsa::kAmx};

absl::string_view CpuIsaName(CpuIsa isa);  // "auto", "avx2", "avx2_vnni", "avx512", ...

// INVALID_ARGUMENT, with the names that exist, for any other word.
absl::StatusOr<CpuIsa> ParseCpuIsa(absl::string_view name);

// The answers of a processor and its operating system about themselves.
struct CpuIdWords {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint32_t leaf7_edx = 0;
  uint32_t leaf7_1_eax = 0;        // of subleaf 1
  uint64_t xcr0 = 0;               // registers that the operating system saves
  bool tile_data_allowed = false;  // Linux gave this process the AMX tiles' memory
};

// Reads the words of this machine. Asks Linux for the permission to use AMX tiles, which lasts for
// the process.
CpuIdWords ReadCpuIdWords();

// `wanted`, or for kAuto the best level, where the words allow it; else UNAVAILABLE, saying what is
// missing and what there is. Pure.
absl::StatusOr<CpuIsa> ChooseCpuIsa(CpuIsa wanted, const CpuIdWords& words);

}  // namespace attendant::cpu
