// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "kernels/cpu/simd/amx/simd_amx.h"

// The instructions of AMX (Intel SDM, volume 2) as vectors compute them. Kernels that are compiled
// with this header instead of kernels/cpu/simd/amx/amx_tiles.h have the bits of a machine with AMX,
// as its manual says: they were not compared.

namespace attendant::cpu {
namespace avx512 {

struct Tile {
  alignas(64) char rows[kTile][64];
};
// Of the thread, as the registers.
inline thread_local Tile emulated_tiles[8];
inline thread_local bool tiles_are_configured = false;

// A tile outside a TileScope is an illegal instruction.
template <int tile>
ATTENDANT_INLINE Tile& TileOf() {
  if (!tiles_are_configured) __builtin_trap();
  return emulated_tiles[tile];
}

class TileScope {
 public:
  TileScope() {
    if (tiles_are_configured) __builtin_trap();
    tiles_are_configured = true;
    for (Tile& tile : emulated_tiles) std::memset(tile.rows, 0, sizeof(tile.rows));
  }
  ~TileScope() { tiles_are_configured = false; }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

template <int tile>
ATTENDANT_INLINE void ZeroTile() {
  std::memset(TileOf<tile>().rows, 0, sizeof(Tile));
}
template <int tile>
ATTENDANT_INLINE void LoadTile(const void* rows, int64_t stride) {
  Tile& to = TileOf<tile>();
  for (int64_t row = 0; row < kTile; ++row) {
    std::memcpy(to.rows[row], static_cast<const char*>(rows) + row * stride, 64);
  }
}
template <int tile>
ATTENDANT_INLINE void StoreTile(void* rows, int64_t stride) {
  const Tile& from = TileOf<tile>();
  for (int64_t row = 0; row < kTile; ++row) {
    std::memcpy(static_cast<char*>(rows) + row * stride, from.rows[row], 64);
  }
}

// Rounds to nearest and takes denormals for 0, whatever the thread does.
class TileRounding {
 public:
  TileRounding() : before_(_mm_getcsr()) {
    constexpr unsigned kAllMasked = 0x1f80, kFlushToZero = 0x8000, kDenormalsAreZero = 0x40;
    _mm_setcsr(kAllMasked | kFlushToZero | kDenormalsAreZero);
  }
  ~TileRounding() { _mm_setcsr(before_); }
  TileRounding(const TileRounding&) = delete;
  TileRounding& operator=(const TileRounding&) = delete;

 private:
  const unsigned before_;
};

// noinline: nothing may move out from between the two settings of the rounding.
template <int sums, int a, int b>
__attribute__((noinline)) void MultiplyTilesBf16() {
  const Tile &left = TileOf<a>(), &right = TileOf<b>();
  Tile& out = TileOf<sums>();
  const TileRounding rounding;
  __asm__ volatile("" ::: "memory");
  for (int64_t row = 0; row < kTile; ++row) {
    F32 even = Set(0), odd = Set(0);
    for (int64_t k = 0; k < kTile; ++k) {
      uint32_t pair;
      std::memcpy(&pair, left.rows[row] + k * 4, 4);
      const __m512i values = _mm512_load_si512(right.rows[k]);
      const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000));
      even = Fma(_mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(pair << 16))),
                 _mm512_castsi512_ps(_mm512_slli_epi32(values, 16)), even);
      odd = Fma(_mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(pair & 0xffff0000))),
                _mm512_castsi512_ps(_mm512_and_si512(values, high)), odd);
    }
    float* to = reinterpret_cast<float*>(out.rows[row]);
    Store(to, Add(Load(to), Add(even, odd)));
  }
  __asm__ volatile("" ::: "memory");
}

template <int sums, int a, int b>
ATTENDANT_INLINE void MultiplyTilesBytes() {
  const Tile &left = TileOf<a>(), &right = TileOf<b>();
  Tile& out = TileOf<sums>();
  for (int64_t row = 0; row < kTile; ++row) {
    __m512i total = _mm512_load_si512(out.rows[row]);
    for (int64_t k = 0; k < kTile; ++k) {
      int32_t four;
      std::memcpy(&four, left.rows[row] + k * 4, 4);
      total = _mm512_dpbusd_epi32(total, _mm512_set1_epi32(four), _mm512_load_si512(right.rows[k]));
    }
    _mm512_store_si512(out.rows[row], total);
  }
}

}  // namespace avx512
}  // namespace attendant::cpu
