// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/kernels/attention_tile.h"
#include "kernels/cuda/kernels/conversions.cuh"
#include "kernels/cuda/kernels/ptx.cuh"

// Attention's two matmuls for one warp by itself (mma.sync), on any device; group_matmul.cuh has
// those of sm_90a. A warp owns 16 of its block's 64 queries; a lane holds parts of rows lane / 4
// and lane / 4 + 8 of them, two neighbouring columns in each block of 8 (ptx.cuh). Tiles are in
// shared memory.
namespace attendant::cuda {

inline constexpr int kWarpQueries = 16;

// One step of the warp's queries: matrices of rows 0-7 and 8-15, the lower and the upper 8 columns.
template <int kHeadDim>
__device__ __forceinline__ void LoadQueryStep(uint32_t tile, int warp, int lane, int step,
                                              uint32_t (&q)[4]) {
  LoadMatrices(
      q, tile + Tile<kHeadDim>::Offset(kWarpQueries * warp + lane % 16, 2 * step + lane / 16));
}

// The warp's queries as operands, in registers.
template <int kHeadDim>
struct Queries {
  uint32_t steps[kHeadDim / 16][4];

  __device__ __forceinline__ void Load(uint32_t tile, int warp, int lane) {
#pragma unroll
    for (int step = 0; step < kHeadDim / 16; ++step) {
      LoadQueryStep<kHeadDim>(tile, warp, lane, step, steps[step]);
    }
  }
  __device__ __forceinline__ void Step(int, int step, uint32_t (&q)[4]) const {
    for (int i = 0; i < 4; ++i) q[i] = steps[step][i];
  }
};

// Heads of 256 leave no registers for them: they stay in shared memory.
template <>
struct Queries<256> {
  uint32_t at;
  int of_warp;

  __device__ __forceinline__ void Load(uint32_t tile, int warp, int) { at = tile, of_warp = warp; }
  __device__ __forceinline__ void Step(int lane, int step, uint32_t (&q)[4]) const {
    LoadQueryStep<256>(at, of_warp, lane, step, q);
  }
};

template <typename T, int kHeadDim>
struct WarpMatmuls {
  static constexpr bool kTogether = false;  // see group_matmul.cuh
  Queries<kHeadDim> queries;

  __device__ __forceinline__ void Load(uint32_t tile, int warp, int lane) {
    queries.Load(tile, warp, lane);
  }
  static __device__ __forceinline__ void Publish() {}

  // scores [16, 64] = q [16, head_dim] keys^T. A load takes 16 keys and 16 columns: keys 0-7 and
  // their lower and upper columns, then keys 8-15.
  __device__ __forceinline__ void ComputeScores(uint32_t keys, int lane,
                                                float (&scores)[8][4]) const {
#pragma unroll
    for (int block = 0; block < 8; ++block) {
      for (int i = 0; i < 4; ++i) scores[block][i] = 0;
    }
    // Heads of 256 have no registers for addresses of several steps.
    [[maybe_unused]] constexpr int kUnrolled = kHeadDim <= 128 ? kHeadDim / 16 : 1;
#pragma unroll kUnrolled
    for (int step = 0; step < kHeadDim / 16; ++step) {
      uint32_t q[4];
      queries.Step(lane, step, q);
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        uint32_t k[4];
        const int row = 16 * pair + lane / 16 * 8 + lane % 8;
        LoadMatrices(k, keys + Tile<kHeadDim>::Offset(row, 2 * step + lane / 8 % 2));
        MultiplyAccumulate<T>(scores[2 * pair], q, k[0], k[1]);
        MultiplyAccumulate<T>(scores[2 * pair + 1], q, k[2], k[3]);
      }
    }
  }

  // out [16, head_dim] += powers [16, 64] values. Where a lane has its scores is where the next
  // matmul wants its left operand, so the powers never leave the registers. A load takes 16 keys
  // and 16 columns, transposed: the lower columns of keys 0-7 and 8-15, then the upper.
  __device__ __forceinline__ void AddValues(const float (&powers)[8][4], uint32_t values, int lane,
                                            float (&out)[kHeadDim / 8][4]) const {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      const float(&low)[4] = powers[2 * step];
      const float(&high)[4] = powers[2 * step + 1];
      const uint32_t p[4] = {Pack<T>(low[0], low[1]), Pack<T>(low[2], low[3]),
                             Pack<T>(high[0], high[1]), Pack<T>(high[2], high[3])};
#pragma unroll
      for (int pair = 0; pair < kHeadDim / 16; ++pair) {
        uint32_t v[4];
        LoadMatricesTransposed(
            v, values + Tile<kHeadDim>::Offset(16 * step + lane % 16, 2 * pair + lane / 16));
        MultiplyAccumulate<T>(out[2 * pair], p, v[0], v[1]);
        MultiplyAccumulate<T>(out[2 * pair + 1], p, v[2], v[3]);
      }
    }
  }
};

}  // namespace attendant::cuda
