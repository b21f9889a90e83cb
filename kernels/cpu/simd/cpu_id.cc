// SPDX-License-Identifier: Apache-2.0
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/cpu/simd/cpu_id_bits.h"
#include "kernels/cpu/simd/cpu_isa.h"

namespace attendant::cpu {
namespace {

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

CpuIdWords ReadCpuIdWords() {
  CpuIdWords words;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) words.leaf1_ecx = c;
  if (cpuid::Has(words.leaf1_ecx, cpuid::kOsXsave)) words.xcr0 = ReadXcr0();
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    words.leaf7_ebx = b;
    words.leaf7_ecx = c;
    words.leaf7_edx = d;
    const uint32_t subleaves = a;
    if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) words.leaf7_1_eax = a;
  }
  words.tile_data_allowed = cpuid::Has(words.leaf7_edx, cpuid::kAmxTile) && AskForTiles();
  return words;
}

}  // namespace attendant::cpu
