// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/kernels/attention_tile.h"
#include "kernels/cuda/kernels/conversions.cuh"
#include "kernels/cuda/kernels/group_ptx.cuh"

// Attention's two matmuls for the four warps of a block together (wgmma). Numbers lie in registers
// as in tensor_matmul.cuh, where one warp computes by itself; operands come from shared memory
// without registers in between.
//
// Designs that were tried on an H100, in a kernel without windows and masks: bf16, head_dim 64, 12
// heads, 16,384 tokens in sequences of one length, microseconds.
//
//   length                                  48    128    512   2,048
//   one warp by itself                      47     50    108     376
//   the same, 32 queries a warp             73     50    106     352
//   these                                   41     43     77     257
//   these, 128 queries a block              62     46     83     269
//   these, scores of a tile ahead           41     44     82     263
//   PyTorch 2.11 (cuDNN)                    70     39     68     220
namespace attendant::cuda {

template <typename T, int kHeadDim>
struct GroupMatmuls {
  using Layout = Tile<kHeadDim>;
  // Every warp has to come to every matmul, also where its queries see no key of the tile.
  static constexpr bool kTogether = true;
  uint32_t queries = 0;  // their tile

  __device__ __forceinline__ void Load(uint32_t tile, int, int) { queries = tile; }
  // Before the barrier behind which matmuls read what was copied.
  static __device__ __forceinline__ void Publish() { PublishCopies(); }

  // scores [64, 64] = q [64, head_dim] keys^T
  __device__ __forceinline__ void ComputeScores(uint32_t keys, int, float (&scores)[8][4]) const {
    FenceMatmuls();
#pragma unroll
    for (int step = 0; step < kHeadDim / 16; ++step) {
      const uint32_t at = Layout::PanelOffset(16 * step);
      MultiplyRows<T, Layout::kPanelRowBytes>(scores, queries + at, keys + at, step != 0);
    }
    WaitForMatmuls(scores);
  }

  // out [64, head_dim] += powers [64, 64] values
  __device__ __forceinline__ void AddValues(const float (&powers)[8][4], uint32_t values, int,
                                            float (&out)[kHeadDim / 8][4]) const {
    uint32_t p[4][4];
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      for (int i = 0; i < 4; ++i) {
        const float(&block)[4] = powers[2 * step + i / 2];
        p[step][i] = Pack<T>(block[i % 2 * 2], block[i % 2 * 2 + 1]);
      }
    }
    FenceMatmuls();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      AddPanels<0>(p[step], values + Layout::Offset(16 * step, 0), out);
    }
    WaitForMatmuls(out);
  }

 private:
  template <int kPanel>
  __device__ __forceinline__ void AddPanels(const uint32_t (&p)[4], uint32_t values,
                                            float (&out)[kHeadDim / 8][4]) const {
    constexpr int kColumns = Layout::kPanelRowBytes / 2;
    MultiplyColumns<T, Layout::kPanelRowBytes, kPanel * kColumns / 8>(
        out, p, values + Layout::PanelOffset(kPanel * kColumns));
    if constexpr ((kPanel + 1) * kColumns < kHeadDim) AddPanels<kPanel + 1>(p, values, out);
  }
};

}  // namespace attendant::cuda
