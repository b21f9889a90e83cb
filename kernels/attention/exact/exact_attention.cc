// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/exact/exact_attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/check_call.h"
#include "kernels/attention/exact/mask_args.h"
#include "kernels/core/arena.h"
#include "kernels/core/check.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/attention/attention_plan.h"
#include "kernels/cpu/simd/denormals.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::attention {
namespace {

// Queries below which tasks are not cut for the sake of idle threads.
constexpr int64_t kMinTaskQueries = 48;
// Queries of a task of the weights; for averages, their rows of one head lie in scratch.
constexpr int64_t kWeightsTaskQueries = 48;

struct ThreadBuffers {
  std::byte* flash;
  std::byte* weights;  // scratch of their kernel
  float* mask;
  float* head_weights;  // [kWeightsTaskQueries, keys], of averages
};

// The layout of a call's scratch.
class Buffers {
 public:
  Buffers(const Call& call, const cpu::FlashAttention& flash, Arena& scratch)
      : plan(scratch.Allocate<cpu::AttentionPlan::Sequence>(call.queries.batch() + 1)) {
    const int64_t keys = call.keys.max_len();
    const int64_t begin = scratch.used_bytes();
    ThreadBuffers first{};
    first.flash =
        scratch.Allocate<std::byte>(flash.ScratchBytes(keys, call.key.dim, call.value.dim));
    first.mask = scratch.Allocate<float>(MaskBufferFloats(call, cpu::kMaxTaskQueries));
    if (call.need_weights != WeightsWanted::kNone) {
      first.weights = scratch.Allocate<std::byte>(flash.WeightsScratchBytes(keys, call.key.dim));
    }
    if (call.need_weights == WeightsWanted::kAveraged) {
      first.head_weights = scratch.Allocate<float>(kWeightsTaskQueries * keys);
    }
    thread_bytes = scratch.used_bytes() - begin;
    first_ = first;
  }

  ThreadBuffers thread(int index) const {
    const auto moved = [&](auto* first_of) { return OfThread(first_of, index, thread_bytes); };
    return {moved(first_.flash), moved(first_.weights), moved(first_.mask),
            moved(first_.head_weights)};
  }

  cpu::AttentionPlan plan;
  int64_t thread_bytes;

 private:
  ThreadBuffers first_;
};

void FillPlan(const Call& call, int64_t heads, int64_t most_queries, cpu::AttentionPlan& plan) {
  plan.Fill(call.queries.batch(), {.heads = heads, .most_queries = most_queries}, [&](int64_t i) {
    return cpu::AttentionPlan::Lens{call.queries.len(i), call.keys.len(i)};
  });
}

cpu::AttentionArgs ArgsOf(const Call& call, const cpu::AttentionPiece& piece, int64_t head) {
  const DType dtype = call.dtype;
  return {.q = call.query.at(call.queries, dtype, piece.sequence, head, 0),
          .k = call.key.at(call.keys, dtype, piece.sequence, head, 0),
          .q_stride = call.query.row_stride,
          .k_stride = call.key.row_stride,
          .v_stride = call.value.row_stride,
          .keys = call.keys.len(piece.sequence),
          .head_dim = call.query.dim,
          .value_dim = call.value.dim,
          .query_begin = piece.query_begin,
          .query_end = piece.query_end,
          .scale = ScaleOf(call)};
}

void Attend(const Call& call, const cpu::FlashAttention& flash, const cpu::AttentionPiece& piece,
            const ThreadBuffers& buffers, const Outputs& outputs) {
  for (int64_t head = piece.head_begin; head < piece.head_end; ++head) {
    cpu::AttentionArgs args = ArgsOf(call, piece, head);
    args.v = call.value.at(call.keys, call.dtype, piece.sequence, head, 0);
    args.out = outputs.out.at(call.queries, call.dtype, piece.sequence, head, 0);
    args.out_is_bf16 = call.dtype == DType::kBf16;
    args.out_stride = outputs.out.row_stride;
    args.scratch = buffers.flash;
    ApplyMask(call, piece.sequence, head, /*trim=*/true, buffers.mask, args);
    flash.Run(args);
  }
}

// out [queries of the task, keys] += rows / heads; the first head's are written.
void AddAverage(const float* rows, int64_t count, int64_t head, int64_t heads, float* out) {
  const float share = 1.0f / static_cast<float>(heads);
  if (head == 0) {
    for (int64_t i = 0; i < count; ++i) out[i] = rows[i] * share;
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] += rows[i] * share;
  }
}

void ComputeWeights(const Call& call, const cpu::FlashAttention& flash,
                    const cpu::AttentionPiece& piece, const ThreadBuffers& buffers,
                    float* weights) {
  const int64_t keys = call.keys.len(piece.sequence);
  const int64_t queries = call.queries.len(piece.sequence);
  for (int64_t head = piece.head_begin; head < piece.head_end; ++head) {
    cpu::AttentionArgs args = ArgsOf(call, piece, head);
    args.scratch = buffers.weights;
    ApplyMask(call, piece.sequence, head, /*trim=*/false, buffers.mask, args);
    if (call.need_weights == WeightsWanted::kPerHead) {
      flash.Weights(args, weights + head * queries * keys, keys);
      continue;
    }
    // The kernel counts rows from query 0: the task's are the buffer's first.
    float* origin =
        reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(buffers.head_weights) -
                                 static_cast<uintptr_t>(piece.query_begin * keys) * sizeof(float));
    flash.Weights(args, origin, keys);
    AddAverage(buffers.head_weights, (piece.query_end - piece.query_begin) * keys, head,
               call.query.heads, weights + piece.query_begin * keys);
  }
}

}  // namespace

cpu::FlashAttention FlashAttentionOf(const Call& call) {
  return cpu::FlashAttention(call.isa->kernels, call.dtype);
}

float ScaleOf(const Call& call) {
  return call.scale.value_or(1 / std::sqrt(static_cast<float>(call.query.dim)));
}

absl::StatusOr<Cost> MeasureExact(const Call& call, int threads) {
  ATTENDANT_RETURN_IF_ERROR(CheckEqual("query", call.query.dim, "key", call.key.dim, "dims"));
  ATTENDANT_ASSIGN_OR_RETURN(Cost cost,
                             OutputCost(call, call.query.heads, call.value.dim, call.query.heads));
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t pairs, ScorePairs(call));
  const int64_t score = call.query.dim + kSoftmaxOperations;
  const int64_t seen = SeenPairs(call);
  ATTENDANT_RETURN_IF_ERROR(
      AddOperations({{call.query.heads, seen, score + call.value.dim}}, cost));
  AddOverheads(call, seen, {.sequence = 16384, .query = 128}, cost);
  // Of queries and keys that no mask but causal and window hides from each other.
  AddOverhead(call, std::min(call.queries.tokens(), seen), 1024, cost);
  AddOverhead(call, std::min(call.keys.tokens(), seen), 384, cost);
  AddMaskOperations(call, seen, cost);
  if (call.need_weights != WeightsWanted::kNone) {  // scores are computed once more, of all keys
    ATTENDANT_RETURN_IF_ERROR(AddOperations({{call.query.heads, pairs, score}}, cost));
    AddOverheads(call, pairs, {.sequence = 12288, .query = 1536, .key = 256, .score = 48}, cost);
  }
  // No buffer of a thread has more than a few floats for each key and dim, or key and query.
  ATTENDANT_RETURN_IF_ERROR(CheckedProduct(
      "scratch of threads, keys and dims",
      {threads, call.keys.max_len() + 1024, call.key.dim + call.value.dim + 1024, 16}));
  const cpu::FlashAttention flash = FlashAttentionOf(call);
  Arena scratch;
  const Buffers buffers(call, flash, scratch);
  cost.scratch_bytes = scratch.used_bytes() + (threads - 1) * buffers.thread_bytes;
  return cost;
}

absl::Status RunExact(const Call& call, ThreadPool& pool, std::span<std::byte> memory,
                      const Outputs& outputs) {
  const cpu::FlashAttention flash = FlashAttentionOf(call);
  Arena scratch(memory);
  Buffers buffers(call, flash, scratch);
  cpu::AttentionPlan& plan = buffers.plan;
  int64_t most_queries = cpu::kMaxTaskQueries;
  FillPlan(call, call.query.heads, most_queries, plan);
  while (plan.size() < 2 * pool.threads() && most_queries > kMinTaskQueries) {
    FillPlan(call, call.query.heads, most_queries /= 2, plan);
  }
  pool.ParallelFor(plan.size(), [&](int64_t index, int thread) {
    const cpu::ScopedDenormalFlush flush;
    Attend(call, flash, plan[index], buffers.thread(thread), outputs);
  });
  if (call.need_weights == WeightsWanted::kNone) return absl::OkStatus();
  // Averages: one piece has all the heads, so that no other thread adds to its rows.
  const bool averaged = call.need_weights == WeightsWanted::kAveraged;
  const int64_t weights_heads = averaged ? 1 : call.query.heads;
  FillPlan(call, weights_heads, kWeightsTaskQueries, plan);
  pool.ParallelFor(plan.size(), [&](int64_t index, int thread) {
    const cpu::ScopedDenormalFlush flush;
    cpu::AttentionPiece piece = plan[index];
    if (averaged) piece.head_end = call.query.heads;
    ComputeWeights(call, flash, piece, buffers.thread(thread),
                   outputs.attention_weights + weights_heads * piece.scores_before);
  });
  return absl::OkStatus();
}

}  // namespace attendant::attention
