// SPDX-License-Identifier: Apache-2.0
// Strided block-sparse attention: the fixed pattern of Child et al. 2019 (arXiv 1904.10509).
//
// Tokens are cut into blocks. Query i attends to the keys of its own block and to the last key of
// every other, its summary: of n keys in blocks of b, to b + n / b, which b = sqrt(n) makes least.
// A last block that the tokens do not fill has no summary, as in the paper's pattern.
//
//   block 3, 11 tokens, query 4:   . . x | x x x | . . x | . .
//
// A task is one block of queries. The keys that it may see are copied together,
//
//   gathered [summaries of other blocks | own block]
//
// and attended to as if there were no others: nothing else is read, nor computed. Four heads of 64
// in f32 take 0.48 ms at 1,024 tokens, 3.6 at 4,096 and 26.8 at 16,384 (two Zen 4 cores), an
// exponent of 1.45, where all pairs take 5.5, 91 and some 1,400.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/attention/check_call.h"
#include "kernels/attention/exact/exact_attention.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/reference/reference.h"
#include "kernels/attention/registry.h"
#include "kernels/core/arena.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/denormals.h"

namespace attendant::attention {
namespace {

// A sequence's own, so that its answer does not depend on the others of the batch.
int64_t BlockOf(const Call& call, int64_t queries, int64_t keys) {
  const int64_t longest = std::max<int64_t>({queries, keys, 1});
  if (call.block > 0) return std::min(call.block, longest);
  auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(keys)));
  while (root * root < keys) ++root;
  return std::max<int64_t>(root, 1);
}
int64_t BlockOf(const Call& call, int64_t sequence) {
  return BlockOf(call, call.queries.len(sequence), call.keys.len(sequence));
}

// How the masks are said to the kernel.
enum class Form {
  kWindow,   // causal or nothing: summaries of earlier blocks come first, so a window says it
  kAllowed,  // and a byte for each gathered key
  kBias,     // a number for each query and gathered key
};

Form FormOf(const Call& call) {
  const Mask& mask = call.mask;
  if (mask.tensor.present() || !mask.alibi_slopes.empty() || mask.window >= 0) return Form::kBias;
  return mask.keys.dim(0) != 0 ? Form::kAllowed : Form::kWindow;
}

// In operations: a row copied to where a task gathers its keys, beside its values; and a value of
// the mask for a gathered key.
constexpr int64_t kCopyOperations = 448;
constexpr int64_t kBiasOperations = 256;

// Sizes of the largest task of any sequence.
struct Sizes {
  int64_t block = 1;
  int64_t gathered = 0;
  int64_t pairs = 0;   // of all sequences and one head
  int64_t copies = 0;  // keys gathered by all tasks, of one head
  int64_t tasks = 0;
};

void Include(const Call& call, int64_t queries, int64_t keys, int64_t count, Sizes& sizes) {
  const int64_t block = BlockOf(call, queries, keys);
  const int64_t gathered = std::min(keys, block) + keys / block;
  sizes.block = std::max(sizes.block, block);
  sizes.gathered = std::max(sizes.gathered, gathered);
  sizes.pairs += count * queries * gathered;
  sizes.tasks += count * CeilDivide(queries, block);
  sizes.copies += count * CeilDivide(queries, block) * gathered;
}

// REQUIRES: ScorePairs accepted the call, which has more.
Sizes SizesOf(const Call& call) {
  Sizes sizes;
  if (!call.queries.packed() && !call.keys.packed()) {
    Include(call, call.queries.seq(), call.keys.seq(), call.queries.batch(), sizes);
    return sizes;
  }
  for (int64_t i = 0; i < call.queries.batch(); ++i) {
    Include(call, call.queries.len(i), call.keys.len(i), 1, sizes);
  }
  return sizes;
}

struct ThreadBuffers {
  std::byte* keys;             // [gathered, key dim]
  std::byte* values;           // [gathered, value dim]
  int64_t* places;             // [gathered], the number of each key in its sequence
  uint8_t* allowed;            // [gathered]
  float* bias;                 // [block, gathered]
  float* weights;              // [block, gathered]
  std::byte* kernel;           // scratch of attention
  std::byte* weights_scratch;  // scratch of its weights
};

// The layout of a call's scratch.
struct Buffers {
  Buffers(const Call& call, const cpu::FlashAttention& flash, int num_threads, Arena& scratch) {
    const Sizes sizes = SizesOf(call);
    const int64_t gathered = sizes.gathered, value_bytes = ValueBytes(call.dtype);
    const bool weights = call.need_weights != WeightsWanted::kNone;
    first_task = scratch.Allocate<int64_t>(call.queries.batch() + 1);
    pairs_before = scratch.Allocate<int64_t>(weights ? call.queries.batch() : 0);
    const int64_t begin = scratch.used_bytes();
    first.keys = scratch.Allocate<std::byte>(gathered * call.key.dim * value_bytes);
    first.values = scratch.Allocate<std::byte>(gathered * call.value.dim * value_bytes);
    first.places = scratch.Allocate<int64_t>(gathered);
    first.allowed = scratch.Allocate<uint8_t>(gathered);
    first.bias = scratch.Allocate<float>(FormOf(call) == Form::kBias ? sizes.block * gathered : 0);
    first.weights = scratch.Allocate<float>(weights ? sizes.block * gathered : 0);
    first.kernel =
        scratch.Allocate<std::byte>(flash.ScratchBytes(gathered, call.key.dim, call.value.dim));
    first.weights_scratch = scratch.Allocate<std::byte>(
        weights ? flash.WeightsScratchBytes(gathered, call.key.dim) : 0);
    thread_bytes = scratch.used_bytes() - begin;
    for (int i = 1; i < num_threads; ++i) scratch.Allocate<std::byte>(thread_bytes);
  }

  ThreadBuffers thread(int index) const {
    const auto moved = [&](auto* first_of) { return OfThread(first_of, index, thread_bytes); };
    return {moved(first.keys),    moved(first.values),         moved(first.places),
            moved(first.allowed), moved(first.bias),           moved(first.weights),
            moved(first.kernel),  moved(first.weights_scratch)};
  }

  int64_t* first_task;    // [batch + 1], blocks of queries before each sequence's
  int64_t* pairs_before;  // [batch], its queries * keys before it; only for weights
  ThreadBuffers first;
  int64_t thread_bytes;
};

// One block of queries and, for one head at a time, the keys it may see.
class BlockAttention {
 public:
  BlockAttention(const Call& call, const cpu::FlashAttention& flash, const ThreadBuffers& buffers,
                 int64_t sequence, int64_t block_index)
      : call_(call), flash_(flash), buffers_(buffers), sequence_(sequence) {
    const int64_t keys = call.keys.len(sequence);
    const int64_t block = BlockOf(call, sequence);
    begin_ = block_index * block;
    end_ = std::min(begin_ + block, call.queries.len(sequence));
    for (int64_t key = block - 1; key < keys; key += block) {
      const bool own = key >= begin_ && key < begin_ + block;
      const bool later = key >= begin_ + block;
      if (!own && !(later && call.mask.causal)) Place(key);
    }
    summaries_ = count_;
    for (int64_t key = begin_; key < std::min(begin_ + block, keys); ++key) Place(key);
  }

  void Attend(int64_t head, const Outputs& outputs) {
    cpu::AttentionArgs args = ArgsOf(head);
    Gather(call_.value, head, buffers_.values);
    args.v = buffers_.values;
    args.v_stride = call_.value.dim;
    args.out = outputs.out.at(call_.queries, call_.dtype, sequence_, head, begin_);
    args.out_is_bf16 = call_.dtype == DType::kBf16;
    args.out_stride = outputs.out.row_stride;
    args.scratch = buffers_.kernel;
    flash_.Run(args);
  }

  // Adds share * weights to the rows of `out` [queries, keys] that are this block's.
  void AddWeights(int64_t head, float share, float* out) {
    cpu::AttentionArgs args = ArgsOf(head);
    args.scratch = buffers_.weights_scratch;
    flash_.Weights(args, buffers_.weights, count_);
    const int64_t keys = call_.keys.len(sequence_);
    for (int64_t i = 0; i < end_ - begin_; ++i) {
      float* row = out + (begin_ + i) * keys;
      for (int64_t j = 0; j < count_; ++j) {
        row[buffers_.places[j]] += share * buffers_.weights[i * count_ + j];
      }
    }
  }

  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }

 private:
  void Place(int64_t key) { buffers_.places[count_++] = key; }

  void Gather(const InputRows& rows, int64_t head, std::byte* gathered) const {
    const int64_t bytes = rows.dim * ValueBytes(call_.dtype);
    for (int64_t j = 0; j < count_; ++j) {
      std::memcpy(gathered + j * bytes,
                  rows.at(call_.keys, call_.dtype, sequence_, head, buffers_.places[j]),
                  static_cast<size_t>(bytes));
    }
  }

  // All but values, output and scratch. Queries are counted from the block's first.
  cpu::AttentionArgs ArgsOf(int64_t head) {
    Gather(call_.key, head, buffers_.keys);
    cpu::AttentionArgs args{
        .q = call_.query.at(call_.queries, call_.dtype, sequence_, head, begin_),
        .k = buffers_.keys,
        .q_stride = call_.query.row_stride,
        .k_stride = call_.key.dim,
        .keys = count_,
        .head_dim = call_.key.dim,
        .value_dim = call_.value.dim,
        .query_begin = 0,
        .query_end = end_ - begin_,
        .scale = ScaleOf(call_)};
    switch (FormOf(call_)) {
      case Form::kAllowed:
        for (int64_t j = 0; j < count_; ++j) {
          buffers_.allowed[j] =
              call_.mask.keys.data()[call_.keys.start(sequence_) + buffers_.places[j]];
        }
        args.allowed = buffers_.allowed;
        [[fallthrough]];
      case Form::kWindow:
        if (call_.mask.causal) args.keys_after = summaries_;
        break;
      case Form::kBias:
        FillBias(head);
        args.bias = buffers_.bias;
        args.bias_stride = count_;
    }
    return args;
  }

  void FillBias(int64_t head) {
    const MaskReader reader(call_, sequence_, head);
    float* bias = buffers_.bias;
    for (int64_t query = begin_; query < end_; ++query, bias += count_) {
      reader.Biases(query, {buffers_.places, static_cast<size_t>(count_)}, bias);
    }
  }

  const Call& call_;
  const cpu::FlashAttention& flash_;
  const ThreadBuffers& buffers_;
  int64_t sequence_;
  int64_t begin_, end_;    // queries
  int64_t count_ = 0;      // keys gathered
  int64_t summaries_ = 0;  // of them
};

// A task costs as a sequence of exact attention; each key that it copies as a row.
absl::Status AddStridedOperations(const Call& call, const Sizes& sizes, Cost& cost) {
  const int64_t heads = call.query.heads;
  const int64_t score = call.query.dim + kSoftmaxOperations;
  const int64_t bias = FormOf(call) == Form::kBias ? kBiasOperations : 0;
  ATTENDANT_RETURN_IF_ERROR(
      AddOperations({{heads, sizes.pairs, score + call.value.dim + bias},
                     {heads, sizes.copies, 2 * kCopyOperations + call.key.dim + call.value.dim}},
                    cost));
  AddOverhead(call, sizes.tasks, 16384, cost);
  AddOverhead(call, call.queries.tokens(), 1024, cost);
  if (call.need_weights == WeightsWanted::kNone) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const int64_t all_pairs, ScorePairs(call));
  ATTENDANT_RETURN_IF_ERROR(AddOperations({{heads, sizes.pairs, score + bias + 128},
                                           {heads, sizes.copies, kCopyOperations + call.key.dim}},
                                          cost));
  AddOverhead(call, sizes.tasks, 12288, cost);
  AddOverheads(call, all_pairs, {.query = 1536, .score = 8}, cost);
  return absl::OkStatus();
}

// Blocks of one token: every key is a summary, and every query sees them all.
bool SeesAllKeys(const Call& call) { return call.block == 1; }

absl::StatusOr<Cost> MeasureStrided(const Call& call, int threads) {
  ATTENDANT_RETURN_IF_ERROR(CheckCall(call, call.query.heads, /*gives_weights=*/true));
  ATTENDANT_RETURN_IF_ERROR(CheckEqual("query", call.query.dim, "key", call.key.dim, "dims"));
  if (call.block < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the block is ", call.block, ", it must be at least 1, or 0 for the root"));
  }
  if (SeesAllKeys(call)) return MeasureExact(call, threads);
  ATTENDANT_ASSIGN_OR_RETURN(Cost cost,
                             OutputCost(call, call.query.heads, call.value.dim, call.query.heads));
  ATTENDANT_RETURN_IF_ERROR(ScorePairs(call));
  const Sizes sizes = SizesOf(call);
  ATTENDANT_RETURN_IF_ERROR(AddStridedOperations(call, sizes, cost));
  ATTENDANT_RETURN_IF_ERROR(CheckedProduct(
      "scratch of threads, keys and dims",
      {threads, sizes.gathered + 1024, call.key.dim + call.value.dim + sizes.block + 1024, 16}));
  const cpu::FlashAttention flash = FlashAttentionOf(call);
  Arena scratch;
  const Buffers buffers(call, flash, threads, scratch);
  cost.scratch_bytes = scratch.used_bytes();
  return cost;
}

absl::Status RunStrided(const Call& call, ThreadPool& pool, std::span<std::byte> memory,
                        const Outputs& outputs) {
  if (SeesAllKeys(call)) return RunExact(call, pool, memory, outputs);
  const cpu::FlashAttention flash = FlashAttentionOf(call);
  Arena scratch(memory);
  const Buffers buffers(call, flash, pool.threads(), scratch);
  const int64_t batch = call.queries.batch(), heads = call.query.heads;
  buffers.first_task[0] = 0;
  int64_t pairs = 0;
  for (int64_t i = 0; i < batch; ++i) {
    buffers.first_task[i + 1] =
        buffers.first_task[i] + CeilDivide(call.queries.len(i), BlockOf(call, i));
    if (call.need_weights == WeightsWanted::kNone) continue;
    buffers.pairs_before[i] = pairs;
    pairs += call.queries.len(i) * call.keys.len(i);
  }
  const bool averaged = call.need_weights == WeightsWanted::kAveraged;
  pool.ParallelFor(buffers.first_task[batch], [&](int64_t index, int thread) {
    const cpu::ScopedDenormalFlush flush;
    const int64_t sequence =
        std::upper_bound(buffers.first_task, buffers.first_task + batch + 1, index) -
        buffers.first_task - 1;
    const ThreadBuffers thread_buffers = buffers.thread(thread);
    BlockAttention block(call, flash, thread_buffers, sequence,
                         index - buffers.first_task[sequence]);
    const int64_t queries = call.queries.len(sequence), keys = call.keys.len(sequence);
    for (int64_t head = 0; head < heads; ++head) {
      block.Attend(head, outputs);
      if (call.need_weights == WeightsWanted::kNone) continue;
      float* weights = outputs.attention_weights +
                       (averaged ? 1 : heads) * buffers.pairs_before[sequence] +
                       (averaged ? 0 : head) * queries * keys;
      if (!averaged || head == 0) {
        std::fill(weights + block.begin() * keys, weights + block.end() * keys, 0.0f);
      }
      block.AddWeights(head, averaged ? 1.0f / static_cast<float>(heads) : 1.0f, weights);
    }
  });
  return absl::OkStatus();
}

absl::Status ReferenceStrided(const Call& call, const Outputs& outputs) {
  const double scale = static_cast<double>(ScaleOf(call));
  const auto score = [&](int64_t sequence, int64_t head, int64_t query, int64_t key) {
    const int64_t block = BlockOf(call, sequence);
    const bool seen = query / block == key / block || key % block == block - 1;
    return seen ? reference::Dot(call, sequence, head, query, key) * scale
                : -std::numeric_limits<double>::infinity();
  };
  reference::SoftmaxAttention(call, score, outputs);
  return absl::OkStatus();
}

}  // namespace

const Operator kStridedOperator{
    .kind = Kind::kStrided,
    .name = "strided",
    .title = "strided block-sparse",
    .formula =
        "softmax(q k^T / sqrt(d)) v over the keys of the query's own block and the last of "
        "every block",
    .time = "O(n sqrt(n) d)",
    .memory = "O(n^2) with weights, else O(sqrt(n))",
    .use =
        "Long sequences in which something of everything must be seen: every block by its last "
        "token.",
    .gives_weights = true,
    .parameters = {},
    .measure = MeasureStrided,
    .run = RunStrided,
    .reference = ReferenceStrided,
};

}  // namespace attendant::attention
