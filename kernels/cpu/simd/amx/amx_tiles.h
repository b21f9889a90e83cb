// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/amx/simd_amx.h"

// The instructions of AMX. The intrinsics of g++ do not say that a tile load reads memory, so that
// stores may move behind it: they are written here as assembly. tests/support/isa_emulation has
// others of the same names, for machines without AMX.

namespace attendant::cpu {
namespace avx512 {

// Gives the calling thread eight tiles of 16 rows and 64 bytes for the lifetime of the object, and
// releases them then: a thread with live tiles costs 8 KB more in every context switch. oneDNN sets
// its own configuration in each of its calls, so nothing of theirs may be called in between.
class TileScope {
 public:
  TileScope() {
    alignas(64) TileConfig config;
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
  }
  ~TileScope() { __asm__ volatile("tilerelease" ::); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

 private:
  struct TileConfig {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
};

template <int tile>
ATTENDANT_INLINE void ZeroTile() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(tile));
}
// 16 rows of 64 bytes, `stride` bytes apart.
template <int tile>
ATTENDANT_INLINE void LoadTile(const void* rows, int64_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                   :
                   : "r"(rows), "r"(stride), "i"(tile)
                   : "memory");
}
template <int tile>
ATTENDANT_INLINE void StoreTile(void* rows, int64_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                   :
                   : "r"(rows), "r"(stride), "i"(tile)
                   : "memory");
}
// sums [16, 16] f32 += a [16, 32] b, both bf16; row i of b's tile holds rows 2i and 2i + 1 of b
// [32, 16] in pairs. The even rows' products of a tile are summed apart from the odd rows', and
// denormals are taken for 0.
template <int sums, int a, int b>
ATTENDANT_INLINE void MultiplyTilesBf16() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(b));
}
// sums [16, 16] s32 += a [16, 64] u8 times b s8; row i of b's tile holds rows 4i to 4i + 3 of b
// [64, 16], four values side by side.
template <int sums, int a, int b>
ATTENDANT_INLINE void MultiplyTilesBytes() {
  __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(b));
}

}  // namespace avx512
}  // namespace attendant::cpu
