// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/attention/check_call.h"
#include "kernels/attention/scored/linear_sums.h"
#include "kernels/attention/scored/scored_attention.h"
#include "kernels/attention/scored/wave.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/denormals.h"

// With S = sum of phi(k)^T v and z = sum of phi(k), a query's output is phi(q) S / (phi(q) . z).
// Sums are made of blocks of kBlock keys, so that they are the same whoever computes them:
//
//   1  state[b] = (S, z) of key block b
//   2  without causal: state[0] = sum of all. With: state[b] = sum of the blocks before b
//   3  outputs of query block b; with causal, the block's own keys are added chunk by chunk, and
//      inside a chunk of kChunk the quadratic form is the faster one
namespace attendant::attention {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kChunk = 64;

int64_t Blocks(int64_t len) { return CeilDivide(len, kBlock); }

// Sizes, in floats.
struct Layout {
  explicit Layout(const Call& call)
      : key_dim(call.key.dim),
        value_dim(call.value.dim),
        state(RoundUp(key_dim * (value_dim + 1), 16)),
        thread_total(state + kChunk * (3 * key_dim + 2 * value_dim + kChunk) +
                     RoundUp(value_dim, 16)) {}

  // Of one head: a state for each key block, and one where there is no key.
  int64_t Head(int64_t keys) const { return state * std::max<int64_t>(Blocks(keys), 1); }

  int64_t key_dim;
  int64_t value_dim;
  int64_t state;  // S [key_dim, value_dim], z [key_dim]
  int64_t thread_total;
};

void MapRow(const ScoredKernels& kernels, FeatureMap map, float* row, int64_t n) {
  map == FeatureMap::kRelu ? kernels.relu(row, n) : kernels.elu_plus_one(row, n);
}

class Runner {
 public:
  Runner(const Call& call, const ScoredKernels& kernels, int threads, std::span<std::byte> scratch,
         const Outputs& outputs)
      : call_(call),
        kernels_(kernels),
        outputs_(outputs),
        layout_(call),
        thread_scratch_(reinterpret_cast<float*>(scratch.data())),
        states_(thread_scratch_ + threads * layout_.thread_total),
        states_floats_(static_cast<int64_t>(scratch.size() / sizeof(float)) -
                       threads * layout_.thread_total) {}

  void Run(ThreadPool& pool) {
    const int64_t groups = call_.queries.batch() * call_.query.heads;
    for (int64_t next = 0; next < groups;) {
      wave_.Clear();
      while (next < groups && AddGroup(next)) ++next;
      pool.ParallelFor(wave_.tasks(kSum), [&](int64_t task, int thread) { Sum(task, thread); });
      pool.ParallelFor(wave_.count(), [&](int64_t group, int) { Accumulate(wave_.group(group)); });
      pool.ParallelFor(wave_.tasks(kAttend),
                       [&](int64_t task, int thread) { Attend(task, thread); });
    }
  }

 private:
  enum Phase : size_t { kSum, kAttend };

  // Where a thread keeps what it works on.
  struct Pieces {
    float* state;   // as in Layout
    float* q;       // [kChunk, key_dim], mapped
    float* k;       // [kChunk, key_dim], mapped
    float* panel;   // [key_dim, kChunk]: k transposed
    float* v;       // [kChunk, value_dim]
    float* out;     // [kChunk, value_dim], and one row more
    float* scores;  // [kChunk, kChunk]
  };

  bool AddGroup(int64_t index) {
    const int64_t sequence = index / call_.query.heads;
    const int64_t keys = call_.keys.len(sequence);
    return wave_.Add({.sequence = sequence,
                      .head = index % call_.query.heads,
                      .floats = layout_.Head(keys),
                      .tasks = {Blocks(keys), Blocks(call_.queries.len(sequence))}},
                     states_floats_);
  }

  Pieces PiecesOf(int thread) const {
    Pieces pieces;
    pieces.state = thread_scratch_ + thread * layout_.thread_total;
    pieces.q = pieces.state + layout_.state;
    pieces.k = pieces.q + kChunk * layout_.key_dim;
    pieces.panel = pieces.k + kChunk * layout_.key_dim;
    pieces.v = pieces.panel + kChunk * layout_.key_dim;
    pieces.out = pieces.v + kChunk * layout_.value_dim;
    pieces.scores = pieces.out + kChunk * layout_.value_dim + RoundUp(layout_.value_dim, 16);
    return pieces;
  }

  float* StateOf(const Wave::HeadGroup& group, int64_t block) const {
    return states_ + group.floats + block * layout_.state;
  }

  void LoadKeys(const Wave::HeadGroup& group, int64_t begin, int64_t count,
                const Pieces& pieces) const {
    const KeyRange range{group.sequence, group.head, begin, count};
    LoadKeyFeatures(kernels_, call_, range, pieces.k);
    LoadKeyRows(kernels_, call_, call_.value, range, pieces.v);
  }

  // state += (k^T v, sum of k) of the loaded keys
  void AddKeys(int64_t count, const Pieces& pieces, float* state) const {
    kernels_.matmul({.a = pieces.k,
                     .a_row_stride = 1,
                     .a_column_stride = layout_.key_dim,
                     .b = pieces.v,
                     .b_row_stride = layout_.value_dim,
                     .c = state,
                     .c_row_stride = layout_.value_dim,
                     .m = layout_.key_dim,
                     .n = layout_.value_dim,
                     .k = count,
                     .accumulate = true});
    float* sums = state + layout_.key_dim * layout_.value_dim;
    for (int64_t i = 0; i < count; ++i) {
      kernels_.add_scaled(pieces.k + i * layout_.key_dim, 1, layout_.key_dim, sums);
    }
  }

  void Sum(int64_t task, int thread) const {
    const cpu::ScopedDenormalFlush flush;
    const Wave::HeadGroup& group = wave_.GroupOf(kSum, task);
    const int64_t block = task - group.tasks[kSum];
    const int64_t end = std::min((block + 1) * kBlock, call_.keys.len(group.sequence));
    const Pieces pieces = PiecesOf(thread);
    float* state = StateOf(group, block);
    std::fill_n(state, layout_.state, 0.0f);
    for (int64_t key = block * kBlock; key < end; key += kChunk) {
      const int64_t count = std::min(kChunk, end - key);
      LoadKeys(group, key, count, pieces);
      AddKeys(count, pieces, state);
    }
  }

  void Accumulate(const Wave::HeadGroup& group) const {
    const cpu::ScopedDenormalFlush flush;
    const int64_t blocks = Blocks(call_.keys.len(group.sequence));
    if (blocks == 0) std::fill_n(StateOf(group, 0), layout_.state, 0.0f);
    if (!call_.mask.causal) {
      for (int64_t b = 1; b < blocks; ++b) {
        kernels_.add_scaled(StateOf(group, b), 1, layout_.state, StateOf(group, 0));
      }
      return;
    }
    // state[b] = state[0] + ... + state[b]; block b begins with state[b - 1]
    for (int64_t b = 1; b < blocks; ++b) {
      kernels_.add_scaled(StateOf(group, b - 1), 1, layout_.state, StateOf(group, b));
    }
  }

  void Attend(int64_t task, int thread) const {
    const cpu::ScopedDenormalFlush flush;
    const Wave::HeadGroup& group = wave_.GroupOf(kAttend, task);
    const int64_t block = task - group.tasks[kAttend];
    const int64_t queries = call_.queries.len(group.sequence),
                  keys = call_.keys.len(group.sequence);
    const int64_t end = std::min((block + 1) * kBlock, queries);
    const Pieces pieces = PiecesOf(thread);
    const float* state = StateOf(group, 0);
    if (call_.mask.causal) {
      if (block == 0) {
        std::fill_n(pieces.state, layout_.state, 0.0f);
      } else {
        const int64_t before = std::min(block, std::max<int64_t>(Blocks(keys), 1)) - 1;
        std::copy_n(StateOf(group, before), layout_.state, pieces.state);
      }
      state = pieces.state;
    }
    for (int64_t query = block * kBlock; query < end; query += kChunk) {
      const int64_t rows = std::min(kChunk, end - query);
      LoadQueryFeatures(
          kernels_, call_,
          {.sequence = group.sequence, .head = group.head, .query = query, .rows = rows}, pieces.q);
      const int64_t own = call_.mask.causal ? std::clamp<int64_t>(keys - query, 0, rows) : 0;
      AttendChunk(group, query, rows, own, state, pieces);
      if (own > 0) AddKeys(own, pieces, pieces.state);
    }
  }

  // The outputs of `rows` loaded queries: of the keys in `state`, and, of the `own` keys that begin
  // where the queries begin, those up to each query itself.
  void AttendChunk(const Wave::HeadGroup& group, int64_t query, int64_t rows, int64_t own,
                   const float* state, const Pieces& pieces) const {
    kernels_.matmul({.a = pieces.q,
                     .a_row_stride = layout_.key_dim,
                     .b = state,
                     .b_row_stride = layout_.value_dim,
                     .c = pieces.out,
                     .c_row_stride = layout_.value_dim,
                     .m = rows,
                     .n = layout_.value_dim,
                     .k = layout_.key_dim});
    if (own > 0) AddOwnKeys(group, query, rows, own, pieces);
    const float* sums = state + layout_.key_dim * layout_.value_dim;
    for (int64_t r = 0; r < rows; ++r) {
      float total = kernels_.dot(pieces.q + r * layout_.key_dim, sums, layout_.key_dim);
      total += kernels_.sum(pieces.scores + r * kChunk, std::min(own, r + 1));
      kernels_.store_row(
          pieces.out + r * layout_.value_dim, total == 0 ? 0 : 1 / total, layout_.value_dim,
          call_.dtype == DType::kBf16,
          outputs_.out.at(call_.queries, call_.dtype, group.sequence, group.head, query + r));
    }
  }

  // out += (q k^T, cut above its diagonal) v, which are left in scores, k and v
  void AddOwnKeys(const Wave::HeadGroup& group, int64_t query, int64_t rows, int64_t own,
                  const Pieces& pieces) const {
    LoadKeys(group, query, own, pieces);
    kernels_.transpose(pieces.k, layout_.key_dim, own, layout_.key_dim, pieces.panel, kChunk);
    kernels_.matmul({.a = pieces.q,
                     .a_row_stride = layout_.key_dim,
                     .b = pieces.panel,
                     .b_row_stride = kChunk,
                     .c = pieces.scores,
                     .c_row_stride = kChunk,
                     .m = rows,
                     .n = own,
                     .k = layout_.key_dim});
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = r + 1; i < own; ++i) pieces.scores[r * kChunk + i] = 0;
    }
    SumWeightedValues(kernels_,
                      {.a = pieces.scores,
                       .a_row_stride = kChunk,
                       .b = pieces.v,
                       .b_row_stride = layout_.value_dim,
                       .c = pieces.out,
                       .c_row_stride = layout_.value_dim,
                       .m = rows,
                       .n = layout_.value_dim,
                       .k = own,
                       .accumulate = true},
                      kernels_.finite(pieces.v, own * layout_.value_dim),
                      pieces.out + kChunk * layout_.value_dim);
  }

  const Call& call_;
  const ScoredKernels& kernels_;
  const Outputs& outputs_;
  const Layout layout_;
  float* const thread_scratch_;
  float* const states_;
  const int64_t states_floats_;
  Wave wave_;
};

}  // namespace

void LoadKeyFeatures(const ScoredKernels& kernels, const Call& call, const KeyRange& range,
                     float* rows) {
  const int64_t dim = call.key.dim;
  LoadKeyRows(kernels, call, call.key, range, rows);
  MapRow(kernels, call.feature_map, rows, range.count * dim);
  if (call.mask.keys.dim(0) == 0) return;
  const uint8_t* mask = call.mask.keys.data() + call.keys.start(range.sequence) + range.begin;
  for (int64_t i = 0; i < range.count; ++i) {
    if (mask[i] == 0) std::fill_n(rows + i * dim, dim, 0.0f);
  }
}

void LoadQueryFeatures(const ScoredKernels& kernels, const Call& call, const QueryBlock& block,
                       float* rows) {
  LoadQueryRows(kernels, call, block, rows);
  MapRow(kernels, call.feature_map, rows, block.rows * call.query.dim);
}

absl::Status MeasureLinearSums(const Call& call, int threads, Cost& cost) {
  const int64_t heads = call.query.heads, key_dim = call.key.dim, value_dim = call.value.dim;
  // All that is added up below stays under a small multiple of these.
  ATTENDANT_RETURN_IF_ERROR(
      CheckedProduct("scratch of heads, key blocks and dims",
                     {heads, Blocks(call.keys.max_len()) + 1, key_dim, value_dim + 1}));
  ATTENDANT_RETURN_IF_ERROR(CheckedProduct(
      "scratch of threads and dims", {threads, key_dim + kChunk, value_dim + key_dim + kChunk}));
  const Layout layout(call);
  int64_t total = 0;
  for (int64_t i = 0; i < call.keys.batch() && total < Wave::kFloats; ++i) {
    total += heads * layout.Head(call.keys.len(i));
  }
  const int64_t wave = std::max(layout.Head(call.keys.max_len()), std::min(total, Wave::kFloats));
  cost.scratch_bytes = (threads * layout.thread_total + wave) * static_cast<int64_t>(sizeof(float));
  const int64_t own = call.mask.causal ? kChunk : 0;
  const int64_t query = call.mask.causal ? 3072 : 1280;
  AddOverheads(call, 0, {.sequence = 16384, .query = query, .key = 1280}, cost);
  return AddOperations({{heads, call.keys.tokens(), key_dim, value_dim + 1},
                        {heads, call.queries.tokens(), key_dim, value_dim + 1},
                        {heads, call.queries.tokens(), own, key_dim + value_dim}},
                       cost);
}

void RunLinearSums(const Call& call, const ScoredKernels& kernels, ThreadPool& pool,
                   std::span<std::byte> scratch, const Outputs& outputs) {
  Runner(call, kernels, pool.threads(), scratch, outputs).Run(pool);
}

}  // namespace attendant::attention
