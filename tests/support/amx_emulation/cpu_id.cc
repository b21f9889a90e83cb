// SPDX-License-Identifier: Apache-2.0
// This processor, with AMX besides.
#define ReadCpuIdWords ReadOwnCpuIdWords
#include "kernels/cpu/simd/cpu_id.cc"
#undef ReadCpuIdWords

namespace attendant {

CpuIdWords ReadCpuIdWords() {
  CpuIdWords words = ReadOwnCpuIdWords();
  words.leaf7_edx |= cpuid::kAmxTile | cpuid::kAmxBf16 | cpuid::kAmxInt8;
  words.xcr0 |= cpuid::kXcr0Amx;
  words.tile_data_allowed = true;
  return words;
}

}  // namespace attendant
