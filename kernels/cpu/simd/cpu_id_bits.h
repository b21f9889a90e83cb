// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant::cpuid {

// Bits of CPUID (Intel SDM, volume 2A) and of XCR0 (volume 1, 13.3).
inline constexpr uint32_t kFma = 1u << 12;      // leaf 1, ecx
inline constexpr uint32_t kOsXsave = 1u << 27;  // leaf 1, ecx
inline constexpr uint32_t kAvx2 = 1u << 5;      // leaf 7, ebx, as the next four
inline constexpr uint32_t kAvx512F = 1u << 16;
inline constexpr uint32_t kAvx512Dq = 1u << 17;
inline constexpr uint32_t kAvx512Bw = 1u << 30;
inline constexpr uint32_t kAvx512Vl = 1u << 31;
inline constexpr uint32_t kAvx512Vnni = 1u << 11;  // leaf 7, ecx
inline constexpr uint32_t kAmxBf16 = 1u << 22;     // leaf 7, edx, as the next two
inline constexpr uint32_t kAmxTile = 1u << 24;
inline constexpr uint32_t kAmxInt8 = 1u << 25;
inline constexpr uint32_t kAvxVnni = 1u << 4;  // leaf 7, subleaf 1, eax, as the next
inline constexpr uint32_t kAvx512Bf16 = 1u << 5;
inline constexpr uint64_t kXcr0Avx = 0x6;      // xmm, ymm
inline constexpr uint64_t kXcr0Avx512 = 0xe6;  // and opmask, zmm
inline constexpr uint64_t kXcr0Amx = 0x60000;  // tile configuration, tile data

inline bool Has(uint64_t word, uint64_t bits) { return (word & bits) == bits; }

}  // namespace attendant::cpuid
