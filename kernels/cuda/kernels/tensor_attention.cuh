// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/kernels/attention_mask.cuh"
#include "kernels/cuda/kernels/attention_tile.h"
#include "kernels/cuda/kernels/conversions.cuh"
#include "kernels/cuda/kernels/ptx.cuh"
#include "kernels/cuda/kernels/tensor_matmul.cuh"

// Attention's steps around its matmuls.
namespace attendant::cuda {

inline constexpr int kAttentionWarps = kTaskQueries / kWarpQueries;
inline constexpr int kAttentionThreads = 32 * kAttentionWarps;

// Copies rows [64, head_dim] of 16-bit numbers, `stride_bytes` apart, into a tile, all threads of
// the block together. What lies beyond `rows` or beyond head_dim becomes zeros.
template <int kHeadDim>
__device__ __forceinline__ void CopyTile(uint32_t tile, const unsigned char* from,
                                         int64_t stride_bytes, int rows, int head_dim) {
  using Layout = Tile<kHeadDim>;
  constexpr int kStep = kAttentionThreads / Layout::kChunks;  // rows
  const int chunk = static_cast<int>(threadIdx.x) % Layout::kChunks;
  const int first = static_cast<int>(threadIdx.x) / Layout::kChunks;
  const unsigned char* source = from + first * stride_bytes + chunk * 16;
#pragma unroll
  for (int step = 0; step < Layout::kRows; step += kStep) {
    const bool inside = first + step < rows && chunk * kChunkNumbers < head_dim;
    CopyAsync16(tile + Layout::Offset(first + step, chunk), source, inside);
    source += kStep * stride_bytes;
  }
}

// Masks a tile of scores whose first key is `tile_begin`. What needs no mask and is inside all
// windows need not come here.
template <Scores kScores>
__device__ __forceinline__ void MaskScores(float scale_log2, const RowMask (&masks)[2],
                                           int tile_begin, int lane, float (&scores)[8][4]) {
#pragma unroll
  for (int block = 0; block < 8; ++block) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = tile_begin + 8 * block + 2 * (lane % 4) + i % 2;
      scores[block][i] = MaskedScore<kScores>(scores[block][i], scale_log2, masks[i / 2], key);
    }
  }
}

// scores become powers of two, without the row's final factor; `out`, what has been summed up of
// earlier tiles, is brought to the same shift.
template <int kHeadDim>
__device__ __forceinline__ void TakePowers(float factor, RowSoftmax (&rows)[2],
                                           float (&scores)[8][4], float (&out)[kHeadDim / 8][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {  // row lane / 4, then row lane / 4 + 8
    float largest = -INFINITY;
#pragma unroll
    for (int block = 0; block < 8; ++block) {
      largest = fmaxf(largest, fmaxf(scores[block][2 * half], scores[block][2 * half + 1]));
    }
    // The other columns of the row are in the three neighbouring lanes.
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
    float shift;
    const float correction = rows[half].Raise(largest, factor, shift);
#pragma unroll
    for (int block = 0; block < 8; ++block) {
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        scores[block][i] = Exp2((scores[block][i] - shift) * factor);
        rows[half].sum += scores[block][i];  // of this lane's columns only
      }
    }
#pragma unroll
    for (int block = 0; block < kHeadDim / 8; ++block) {
      out[block][2 * half] *= correction;
      out[block][2 * half + 1] *= correction;
    }
  }
}

// Divides by the rows' sums and stores `rows` of the warp's 16 rows, by way of the warp's part of
// the queries' tile, which nobody needs any more: so whole rows are written 16 bytes at a time.
template <typename T, int kHeadDim>
__device__ __forceinline__ void StoreContext(const float (&out)[kHeadDim / 8][4],
                                             const RowSoftmax (&softmax)[2], int warp, int lane,
                                             unsigned char* to, int64_t stride_bytes, int rows,
                                             int head_dim) {
  using Layout = Tile<kHeadDim>;
  unsigned char* tile = SharedMemory() + SharedTiles<kHeadDim>::kQueries;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = softmax[half].sum;
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    const float inverse = InverseOfSum(sum);
    const int row = kWarpQueries * warp + lane / 4 + 8 * half;
#pragma unroll
    for (int block = 0; block < Layout::kChunks; ++block) {
      *reinterpret_cast<uint32_t*>(tile + Layout::Offset(row, block) + lane % 4 * 4) =
          Pack<T>(out[block][2 * half] * inverse, out[block][2 * half + 1] * inverse);
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < kWarpQueries * Layout::kChunks; i += 32) {
    const int row = i / Layout::kChunks;
    const int chunk = i % Layout::kChunks;
    if (row >= rows || chunk * kChunkNumbers >= head_dim) continue;
    *reinterpret_cast<uint4*>(to + row * stride_bytes + chunk * 16) =
        *reinterpret_cast<const uint4*>(tile + Layout::Offset(kWarpQueries * warp + row, chunk));
  }
}

}  // namespace attendant::cuda
