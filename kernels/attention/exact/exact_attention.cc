// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/exact/exact_attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/check_call.h"
#include "kernels/attention/exact/mask_args.h"
#include "kernels/core/arena.h"
#include "kernels/core/check.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/denormals.h"

namespace attendant::attention {
namespace {

// Below this many scores a task costs more to hand out than to compute: it takes several heads.
constexpr int64_t kMinTaskScores = 4096;
// Queries below which tasks are not cut for the sake of idle threads.
constexpr int64_t kMinTaskQueries = 48;
// Queries of a task of the weights; for averages, their rows of one head lie in scratch.
constexpr int64_t kWeightsTaskQueries = 48;

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t TaskQueries(int64_t queries, int64_t most) {
  return queries == 0 ? 1 : CeilDivide(queries, CeilDivide(queries, most));
}

int64_t TaskHeads(const Call& call, int64_t sequence, int64_t queries) {
  const int64_t scores = std::max<int64_t>(1, queries * call.keys.len(sequence));
  return std::clamp<int64_t>(kMinTaskScores / scores, 1, call.query.heads);
}

// A task: some heads of one sequence, some of its queries.
struct Task {
  int64_t sequence;
  int64_t head_begin, head_end;
  int64_t query_begin, query_end;
};

// Numbers the tasks of a call, those of the longest sequences first.
class TaskList {
 public:
  static void Lay(const Call& call, Arena& scratch, TaskList& list) {
    list.order_ = scratch.Allocate<int64_t>(call.queries.batch());
    list.first_ = scratch.Allocate<int64_t>(call.queries.batch() + 1);
    if (call.weights != WeightsWanted::kNone) {
      list.pairs_ = scratch.Allocate<int64_t>(call.queries.batch());
    }
  }

  void Fill(const Call& call, int64_t most_queries) {
    call_ = &call;
    most_queries_ = most_queries;
    const int64_t batch = call.queries.batch();
    for (int64_t i = 0; i < batch; ++i) order_[i] = i;
    const auto scores = [&](int64_t i) { return call.queries.len(i) * call.keys.len(i); };
    std::sort(order_, order_ + batch, [&](int64_t a, int64_t b) {
      return scores(a) != scores(b) ? scores(a) > scores(b) : a < b;
    });
    int64_t pairs = 0;
    for (int64_t i = 0; i < batch && pairs_ != nullptr; ++i) {
      pairs_[i] = pairs;
      pairs += scores(i);
    }
    first_[0] = 0;
    for (int64_t i = 0; i < batch; ++i) {
      const int64_t queries = call.queries.len(order_[i]);
      const int64_t piece = TaskQueries(queries, most_queries);
      first_[i + 1] =
          first_[i] + CeilDivide(queries, piece) *
                          CeilDivide(call.query.heads, TaskHeads(call, order_[i], piece));
    }
  }

  int64_t size() const { return first_[call_->queries.batch()]; }
  // Scores of one head before this sequence's. REQUIRES: the call wants weights.
  int64_t pairs_before(int64_t sequence) const { return pairs_[sequence]; }

  Task operator[](int64_t index) const {
    int64_t* end = first_ + call_->queries.batch() + 1;
    const int64_t place = std::upper_bound(first_, end, index) - first_ - 1;
    const int64_t sequence = order_[place];
    const int64_t queries = call_->queries.len(sequence);
    const int64_t piece = TaskQueries(queries, most_queries_);
    const int64_t pieces = CeilDivide(queries, piece);
    const int64_t heads = TaskHeads(*call_, sequence, piece);
    const int64_t group = (index - first_[place]) / pieces;
    const int64_t begin = (index - first_[place]) % pieces * piece;
    return {.sequence = sequence,
            .head_begin = group * heads,
            .head_end = std::min((group + 1) * heads, call_->query.heads),
            .query_begin = begin,
            .query_end = std::min(begin + piece, queries)};
  }

 private:
  const Call* call_ = nullptr;
  int64_t most_queries_ = 0;
  int64_t* order_ = nullptr;  // [batch], sequences by falling number of scores
  int64_t* first_ = nullptr;  // [batch + 1], the first task of order_[i]
  int64_t* pairs_ = nullptr;  // [batch], where the weights of each sequence begin
};

struct ThreadBuffers {
  std::byte* flash;
  std::byte* weights;  // scratch of their kernel
  float* mask;
  float* head_weights;  // [kWeightsTaskQueries, keys], of averages
};

// The layout of a call's scratch.
class Buffers {
 public:
  Buffers(const Call& call, const cpu::FlashAttention& flash, Arena& scratch) {
    TaskList::Lay(call, scratch, tasks);
    const int64_t keys = call.keys.max_len();
    const int64_t begin = scratch.used_bytes();
    ThreadBuffers first{};
    first.flash =
        scratch.Allocate<std::byte>(flash.ScratchBytes(keys, call.key.dim, call.value.dim));
    first.mask = scratch.Allocate<float>(MaskBufferFloats(call, cpu::kMaxTaskQueries));
    if (call.weights != WeightsWanted::kNone) {
      first.weights = scratch.Allocate<std::byte>(flash.WeightsScratchBytes(keys, call.key.dim));
    }
    if (call.weights == WeightsWanted::kAveraged) {
      first.head_weights = scratch.Allocate<float>(kWeightsTaskQueries * keys);
    }
    thread_bytes = scratch.used_bytes() - begin;
    first_ = first;
  }

  ThreadBuffers thread(int index) const {
    const auto moved = [&](auto* pointer) {
      return reinterpret_cast<decltype(pointer)>(reinterpret_cast<std::byte*>(pointer) +
                                                 index * thread_bytes);
    };
    return {moved(first_.flash), moved(first_.weights), moved(first_.mask),
            moved(first_.head_weights)};
  }

  TaskList tasks;
  int64_t thread_bytes;

 private:
  ThreadBuffers first_;
};

cpu::AttentionArgs ArgsOf(const Call& call, const Task& task, int64_t head) {
  const DType dtype = call.dtype;
  return {.q = call.query.at(call.queries, dtype, task.sequence, head, 0),
          .k = call.key.at(call.keys, dtype, task.sequence, head, 0),
          .q_stride = call.query.row_stride,
          .k_stride = call.key.row_stride,
          .v_stride = call.value.row_stride,
          .keys = call.keys.len(task.sequence),
          .head_dim = call.query.dim,
          .value_dim = call.value.dim,
          .query_begin = task.query_begin,
          .query_end = task.query_end,
          .scale = ScaleOf(call)};
}

void Attend(const Call& call, const cpu::FlashAttention& flash, const Task& task,
            const ThreadBuffers& buffers, const Outputs& outputs) {
  for (int64_t head = task.head_begin; head < task.head_end; ++head) {
    cpu::AttentionArgs args = ArgsOf(call, task, head);
    args.v = call.value.at(call.keys, call.dtype, task.sequence, head, 0);
    args.out = outputs.out.at(call.queries, call.dtype, task.sequence, head, 0);
    args.out_is_bf16 = call.dtype == DType::kBf16;
    args.out_stride = outputs.out.row_stride;
    args.scratch = buffers.flash;
    ApplyMask(call, task.sequence, head, /*trim=*/true, buffers.mask, args);
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

void Weigh(const Call& call, const cpu::FlashAttention& flash, const Task& task,
           const ThreadBuffers& buffers, float* weights) {
  const int64_t keys = call.keys.len(task.sequence);
  const int64_t queries = call.queries.len(task.sequence);
  for (int64_t head = task.head_begin; head < task.head_end; ++head) {
    cpu::AttentionArgs args = ArgsOf(call, task, head);
    args.scratch = buffers.weights;
    ApplyMask(call, task.sequence, head, /*trim=*/false, buffers.mask, args);
    if (call.weights == WeightsWanted::kPerHead) {
      flash.Weights(args, weights + head * queries * keys, keys);
      continue;
    }
    // The kernel counts rows from query 0: the task's are the buffer's first.
    float* origin =
        reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(buffers.head_weights) -
                                 static_cast<uintptr_t>(task.query_begin * keys) * sizeof(float));
    flash.Weights(args, origin, keys);
    AddAverage(buffers.head_weights, (task.query_end - task.query_begin) * keys, head,
               call.query.heads, weights + task.query_begin * keys);
  }
}

}  // namespace

absl::StatusOr<cpu::FlashAttention> SharedFlashAttention(DType dtype) {
  static const auto f32 = cpu::FlashAttention::Create(DType::kF32);
  static const auto bf16 = cpu::FlashAttention::Create(DType::kBf16);
  return dtype == DType::kBf16 ? bf16 : f32;
}

float ScaleOf(const Call& call) {
  return call.scale.value_or(1 / std::sqrt(static_cast<float>(call.query.dim)));
}

absl::StatusOr<Cost> MeasureExact(const Call& call, int threads) {
  ATTENDANT_RETURN_IF_ERROR(CheckEqual("query", call.query.dim, "key", call.key.dim, "dims"));
  ATTENDANT_ASSIGN_OR_RETURN(Cost cost,
                             OutputCost(call, call.query.heads, call.value.dim, call.query.heads));
  ATTENDANT_ASSIGN_OR_RETURN(int64_t pairs, ScorePairs(call));
  const int64_t score = call.query.dim + kSoftmaxOperations;
  // Weights are computed once more.
  const int64_t weights = call.weights == WeightsWanted::kNone ? 0 : score;
  ATTENDANT_RETURN_IF_ERROR(
      AddOperations({{call.query.heads, pairs, score + call.value.dim + weights}}, cost));
  // No buffer of a thread has more than a few floats for each key and dim, or key and query.
  ATTENDANT_RETURN_IF_ERROR(CheckedProduct(
      "scratch of threads, keys and dims",
      {threads, call.keys.max_len() + 1024, call.key.dim + call.value.dim + 1024, 16}));
  ATTENDANT_ASSIGN_OR_RETURN(cpu::FlashAttention flash, SharedFlashAttention(call.dtype));
  Arena scratch;
  const Buffers buffers(call, flash, scratch);
  cost.scratch_bytes = scratch.used_bytes() + (threads - 1) * buffers.thread_bytes;
  return cost;
}

absl::Status RunExact(const Call& call, ThreadPool& pool, std::span<std::byte> memory,
                      const Outputs& outputs) {
  ATTENDANT_ASSIGN_OR_RETURN(cpu::FlashAttention flash, SharedFlashAttention(call.dtype));
  Arena scratch(memory);
  Buffers buffers(call, flash, scratch);
  TaskList& tasks = buffers.tasks;
  int64_t most_queries = cpu::kMaxTaskQueries;
  tasks.Fill(call, most_queries);
  while (tasks.size() < 2 * pool.threads() && most_queries > kMinTaskQueries) {
    tasks.Fill(call, most_queries /= 2);
  }
  pool.ParallelFor(tasks.size(), [&](int64_t index, int thread) {
    const cpu::ScopedDenormalFlush flush;
    Attend(call, flash, tasks[index], buffers.thread(thread), outputs);
  });
  if (call.weights == WeightsWanted::kNone) return absl::OkStatus();
  // Averages: one task has all the heads, so that nobody else adds to its rows.
  Call heads_together = call;
  const bool averaged = call.weights == WeightsWanted::kAveraged;
  if (averaged) heads_together.query.heads = 1;
  tasks.Fill(heads_together, kWeightsTaskQueries);
  const int64_t weights_heads = averaged ? 1 : call.query.heads;
  pool.ParallelFor(tasks.size(), [&](int64_t index, int thread) {
    const cpu::ScopedDenormalFlush flush;
    Task task = tasks[index];
    if (averaged) task.head_end = call.query.heads;
    Weigh(call, flash, task, buffers.thread(thread),
          outputs.weights + weights_heads * tasks.pairs_before(task.sequence));
  });
  return absl::OkStatus();
}

}  // namespace attendant::attention
