// SPDX-License-Identifier: Apache-2.0
// This processor, with AVX-VNNI, AVX-512 and AMX besides.
#define ReadCpuIdWords ReadOwnCpuIdWords
#include "kernels/cpu/simd/cpu_id.cc"
#undef ReadCpuIdWords

namespace attendant::cpu {

CpuIdWords ReadCpuIdWords() {
  CpuIdWords words = ReadOwnCpuIdWords();
  words.leaf7_ebx |= cpuid::kAvx512F | cpuid::kAvx512Dq | cpuid::kAvx512Bw | cpuid::kAvx512Vl;
  words.leaf7_ecx |= cpuid::kAvx512Vnni;
  words.leaf7_1_eax |= cpuid::kAvxVnni | cpuid::kAvx512Bf16;
  words.leaf7_edx |= cpuid::kAmxTile | cpuid::kAmxBf16 | cpuid::kAmxInt8;
  words.xcr0 |= cpuid::kXcr0Avx512 | cpuid::kXcr0Amx;
  words.tile_data_allowed = true;
  return words;
}

}  // namespace attendant::cpu
