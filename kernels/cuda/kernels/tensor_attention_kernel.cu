// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/kernels/attention_kernels.h"

#include <cuda_runtime.h>

#include <type_traits>

#include "kernels/cuda/kernels/group_matmul.cuh"
#include "kernels/cuda/kernels/launch.cuh"
#include "kernels/cuda/kernels/tensor_attention.cuh"

namespace attendant::cuda {
namespace {

// How many blocks a multiprocessor is to hold at least, which bounds registers at 65,536 / (128
// blocks). Those that mask by pointers have these to hold besides; with one block more they would
// spill. Matmuls of a group need no registers for operands.
#ifdef __CUDACC__
constexpr int BlocksEach(int head_dim, Scores scores) {
  const int more = (kGroupMatmuls ? 1 : 0) + (scores == Scores::kPlain ? 1 : 0);
  if (head_dim == 32) return 3 + more;
  if (head_dim == 64) return 2 + more;
  return 256 / head_dim;
}
#endif

// The keys that a warp's queries see: any of them, and every one of them.
struct WarpKeys {
  KeyRange any, every;
};
__device__ __forceinline__ WarpKeys KeysOfWarp(const AttentionRule& rule, const AttentionTask& task,
                                               int first_query) {
  const int behind = first_query + kWarpQueries;
  const KeyRange first = AllowedKeys(rule, first_query, task.keys);
  const KeyRange last =
      AllowedKeys(rule, (behind < task.queries ? behind : task.queries) - 1, task.keys);
  return {{first.begin, last.end}, {last.begin, first.end}};
}

// Whether no tile goes without a mask.
template <Scores kScores>
__device__ __forceinline__ bool MasksAll(const AttentionArgs& args, const AttentionTask& task) {
  if (kScores == Scores::kDistances) return HasGaps(args, task);
  return kScores == Scores::kBiased;
}

// A head's first number in row `row`. (Columns of 32 bits: in the kernel few registers are left.)
__device__ __forceinline__ const unsigned char* RowsAt(const void* base, int64_t row,
                                                       int64_t stride, int column) {
  return static_cast<const unsigned char*>(base) + 2 * (row * stride + column);
}

// Masks a tile's scores of a warp. Masks are made anew for each tile: kept, they would cost
// registers in all others.
template <Scores kScores>
__device__ __forceinline__ void MaskTile(const AttentionArgs& args, const AttentionTask& task,
                                         int head, int first_query, int tile_begin, int lane,
                                         float (&scores)[8][4]) {
  const RowMask masks[2] = {MaskOf<kScores>(args, task, head, first_query + lane / 4),
                            MaskOf<kScores>(args, task, head, first_query + lane / 4 + 8)};
  MaskScores<kScores>(args.scale * kLog2E, masks, tile_begin, lane, scores);
}

// One block: one task of one head. Tiles of keys and values come in one ahead of the matmuls;
// tiles outside the windows of all queries are never read, those outside a warp's are skipped by
// that warp (where warps compute together: masked), and only those at the edge of some window are
// masked.
template <typename Matmuls, int kHeadDim, typename T, Scores kScores>
__device__ __forceinline__ void Attend(const AttentionArgs& args, const AttentionTask& task,
                                       int head, int column, int key_column, int head_dim) {
  using Shared = SharedTiles<kHeadDim>;
  const AttentionRule rule = RuleOfRows<kScores>(args, task);
  const KeyRange range = TaskKeys(rule, task);
  const int tiles = (range.end - range.begin + kTileKeys - 1) / kTileKeys;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_query = task.query_begin + kWarpQueries * warp;
  const uint32_t shared = SharedAddress(SharedMemory());
  const auto copy_keys_and_values = [&](int tile) {
    const int begin = range.begin + tile * kTileKeys;
    const int rows = range.end - begin;
    const int64_t row = int64_t{task.key_row} + begin;
    CopyTile<kHeadDim>(shared + Shared::Keys(tile % 2),
                       RowsAt(args.k, row, args.k_stride, key_column), 2 * args.k_stride, rows,
                       head_dim);
    CopyTile<kHeadDim>(shared + Shared::Values(tile % 2),
                       RowsAt(args.v, row, args.v_stride, key_column), 2 * args.v_stride, rows,
                       head_dim);
    CopyAsyncCommit();
  };
  const auto wait_for_copies = [] {
    CopyAsyncWait<0>();
    Matmuls::Publish();
    __syncthreads();
  };

  Matmuls matmuls;
  float out[kHeadDim / 8][4] = {};
  RowSoftmax softmax[2];
  if (tiles > 0) {
    CopyTile<kHeadDim>(
        shared + Shared::kQueries,
        RowsAt(args.q, int64_t{task.query_row} + task.query_begin, args.q_stride, column),
        2 * args.q_stride, task.queries - task.query_begin, head_dim);
    copy_keys_and_values(0);
    wait_for_copies();
    matmuls.Load(shared + Shared::kQueries, warp, lane);
  }
  const bool active = first_query < task.queries;
  const bool masks_all = MasksAll<kScores>(args, task);
  const float scale_log2 = args.scale * kLog2E;
  const WarpKeys keys = active ? KeysOfWarp(rule, task, first_query) : WarpKeys{};
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) copy_keys_and_values(tile + 1);
    const int begin = range.begin + tile * kTileKeys;
    const bool seen = active && (Matmuls::kTogether ||
                                 (begin < keys.any.end && begin + kTileKeys > keys.any.begin));
    if (seen || Matmuls::kTogether) {
      float scores[8][4];
      matmuls.ComputeScores(shared + Shared::Keys(tile % 2), lane, scores);
      if (seen) {
        if (masks_all || begin < keys.every.begin || begin + kTileKeys > keys.every.end) {
          MaskTile<kScores>(args, task, head, first_query, begin, lane, scores);
        }
        TakePowers<kHeadDim>(ExponentFactor<kScores>(scale_log2), softmax, scores, out);
      }
      matmuls.AddValues(scores, shared + Shared::Values(tile % 2), lane, out);
    }
    wait_for_copies();
  }
  if (!active) return;
  const int64_t row = int64_t{task.query_row} + first_query;
  StoreContext<T, kHeadDim>(
      out, softmax, warp, lane,
      static_cast<unsigned char*>(args.context) + 2 * (row * args.context_stride + column),
      2 * args.context_stride, task.queries - first_query, head_dim);
}

template <typename T, int kHeadDim, Scores kScores>
__global__ void __launch_bounds__(kAttentionThreads, BlocksEach(kHeadDim, kScores))
    AttentionKernel(const AttentionArgs args, const BatchCounts* counts, int heads, int head_dim) {
  const int index = static_cast<int>(blockIdx.x) / heads;
  const int head = static_cast<int>(blockIdx.x) % heads;
  const AttentionTask task = args.tasks[index];  // with the count, not after it: one wait less
  if (index >= counts->attention_tasks) return;
  const int column = head * head_dim;
  const int key_column = head / args.heads_per_key * head_dim;
  WithGroupMatmuls([&](auto group) {
    using Matmuls = std::conditional_t<decltype(group)::value, GroupMatmuls<T, kHeadDim>,
                                       WarpMatmuls<T, kHeadDim>>;
    Attend<Matmuls, kHeadDim, T, kScores>(args, task, head, column, key_column, head_dim);
  });
}

using Kernel = void (*)(AttentionArgs, const BatchCounts*, int, int);

struct Variant {
  Kernel kernels[3];  // by Scores
  int shared_bytes;
};

template <typename T, int kHeadDim>
Variant VariantOf() {
  return {{&AttentionKernel<T, kHeadDim, Scores::kPlain>,
           &AttentionKernel<T, kHeadDim, Scores::kDistances>,
           &AttentionKernel<T, kHeadDim, Scores::kBiased>},
          SharedTiles<kHeadDim>::kBytes};
}

// head_dim is filled up with zeros to the next one that there is.
template <typename T>
Variant VariantFor(int64_t head_dim) {
  if (head_dim <= 32) return VariantOf<T, 32>();
  if (head_dim <= 64) return VariantOf<T, 64>();
  return head_dim <= 128 ? VariantOf<T, 128>() : VariantOf<T, 256>();
}
Variant VariantFor(DType dtype, int64_t head_dim) {
  return StateDType(dtype) == DType::kF16 ? VariantFor<F16>(head_dim) : VariantFor<Bf16>(head_dim);
}

}  // namespace

cudaError_t LaunchTensorAttention(DType dtype, const AttentionArgs& args, const BatchCounts* counts,
                                  int64_t max_tasks, int64_t heads, int64_t head_dim,
                                  cudaStream_t stream) {
  const Variant variant = VariantFor(dtype, head_dim);
  return Launch({max_tasks * heads, kAttentionThreads, variant.shared_bytes}, stream,
                variant.kernels[static_cast<int>(ScoresOf(args))], args, counts,
                static_cast<int>(heads), static_cast<int>(head_dim));
}

cudaError_t PrepareTensorAttention(DType dtype, int64_t head_dim) {
  const Variant variant = VariantFor(dtype, head_dim);
  return AllowSharedMemory(variant.shared_bytes,
                           {variant.kernels[0], variant.kernels[1], variant.kernels[2]});
}

}  // namespace attendant::cuda
