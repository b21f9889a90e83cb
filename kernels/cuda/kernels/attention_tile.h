// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/cuda/kernels/attention_plan.h"
#include "kernels/cuda/runtime/host_device.h"

// The layout of tiles of 16-bit numbers in shared memory. Plain arithmetic, tested on the host.
namespace attendant::cuda {

// Numbers of 16 bits in a chunk of 16 bytes, what is copied and loaded at a time.
inline constexpr int kChunkNumbers = 8;

// A tile [64, kHeadDim] of queries, keys or values.
template <int kHeadDim>
struct Tile {
  static_assert(kHeadDim == 32 || kHeadDim == 64 || kHeadDim == 128 || kHeadDim == 256);
  static_assert(kTaskQueries == 64 && kTileKeys == 64);
  static constexpr int kRows = 64;
  static constexpr int kChunks = kHeadDim / kChunkNumbers;  // of a row
  static constexpr int kBytes = kRows * kHeadDim * 2;
  // Panels of up to 64 columns follow one another, in each its rows.
  static constexpr int kPanelRowBytes = kHeadDim == 32 ? 64 : 128;
  static constexpr int kPanelChunks = kPanelRowBytes / 16;

  // The offset in bytes of a chunk of a row. A row's chunks are permuted by the row so that one
  // chunk of 8 consecutive rows, what a matrix load takes at once, is in 8 different groups of
  // banks: chunk c of row r is at place c ^ (r mod 8), and for head_dim 32, where two rows share
  // 128 bytes, at c ^ (r / 2 mod 4). (wgmma knows these as its swizzles of 128 and 64 bytes; they
  // go by the address, so tiles begin at multiples of 1,024.)
  ATTENDANT_HOST_DEVICE static constexpr uint32_t Offset(int row, int chunk) {
    const int place = chunk % kPanelChunks ^ (kHeadDim == 32 ? row / 2 % 4 : row % 8);
    return static_cast<uint32_t>(((chunk / kPanelChunks * kRows + row) * kPanelChunks + place) *
                                 16);
  }
  // The offset in bytes of a column of row 0 without the permutation.
  ATTENDANT_HOST_DEVICE static constexpr uint32_t PanelOffset(int column) {
    const int bytes = 2 * column;
    return static_cast<uint32_t>(bytes / kPanelRowBytes * kRows * kPanelRowBytes +
                                 bytes % kPanelRowBytes);
  }
};

// A block's shared memory: the queries, then two tiles of keys and two of values, so that one of
// each is filled while the other is used. What ptxas 13.0 makes of it without masks, and how many
// blocks of 128 threads then fit a multiprocessor (65,536 registers; 164 KiB of shared memory on
// sm_80, 228 KiB on sm_90a, of which each block costs 1 KiB besides its own):
//
//   head_dim    bytes   registers sm_80/90a/100   blocks on sm_80   on sm_90a
//   32         20,480                126/93/128                 4           5
//   64         40,960               168/112/168                 3           4
//   128        81,920               255/152/241                 2           2
//   256       163,840               255/254/255                 1           1
//
// sm_80 spills a few registers from head_dim 64 on. Devices of 99 KiB (8.6, 8.9) refuse heads of
// 256.
template <int kHeadDim>
struct SharedTiles {
  static constexpr uint32_t kQueries = 0;
  static constexpr int kBytes = 5 * Tile<kHeadDim>::kBytes;

  ATTENDANT_HOST_DEVICE static constexpr uint32_t Keys(int stage) {
    return static_cast<uint32_t>((1 + 2 * stage) * Tile<kHeadDim>::kBytes);
  }
  ATTENDANT_HOST_DEVICE static constexpr uint32_t Values(int stage) {
    return static_cast<uint32_t>((2 + 2 * stage) * Tile<kHeadDim>::kBytes);
  }
};

}  // namespace attendant::cuda
