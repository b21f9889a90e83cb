// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/core/arena.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/threads/thread_pool.h"
#include "kernels/cpu/encoder/packed_layers.h"
#include "kernels/cpu/matmul/linear_executor.h"
#include "kernels/cpu/simd/denormals.h"

namespace attendant::cpu {

// The split of up to one block of rows: all threads compute the same rows together, each a slice of
// the columns (kTogether), or each thread computes its own rows (kApart).
enum class FewRows : uint8_t { kTogether, kApart };

// The blocks that `tokens` rows are cut into, of at most `max_rows` each. They begin at multiples
// of kRowGranularity. The rows are cut into about equal shares, the same number for each thread. A
// share is a block. But if each thread has several large ones, the last ones are cut again, into a
// half and two quarters: threads differ in speed, because clocks do and other processes want
// processors, and all threads wait for the last block. Immutable.
// REQUIRES: `max_rows` is a multiple of kRowGranularity.
class RowBlocks {
 public:
  RowBlocks(int64_t tokens, int64_t max_rows, int threads);

  int64_t count() const { return shares_ + 2 * cut_; }
  // The first row of block `index`; `tokens` for index == count().
  int64_t begin(int64_t index) const;

 private:
  int64_t tokens_;
  int64_t shares_;
  int64_t cut_;  // the last ones, each into three blocks: first the halves, then the quarters
};

// Rows of one block in the number format that matmuls read.
struct Operand {
  std::byte* values = nullptr;
  int64_t row_bytes = 0;
  RowQuantization* quantization = nullptr;  // int8 only

  // To be read, or written for a matmul whose operand is multiplied by `smoothing`.
  OperandRow row(int64_t index, const float* smoothing = nullptr) const {
    return {.values = values + index * row_bytes,
            .quantization = quantization == nullptr ? nullptr : quantization + index,
            .smoothing = smoothing};
  }
};

struct Block {
  int64_t begin = 0;
  int64_t rows = 0;
  int thread = 0;         // who computes it, and whose scratch it uses
  bool together = false;  // all threads do; the scratch is `thread`'s
};

// A row that a matmul of `linear` wrote for this operand.
MatmulRow RowOf(TensorView<float, 2> matmul_out, int64_t row, const OperandRow& operand,
                const PackedLinear& linear);

// The smoothing factors of the operand of `linear`, as OperandRow has them. Null: none.
const float* SmoothingOf(const PackedLinear& linear);

// y += x W for the weights that `linear` keeps apart.
void AddOutliers(const PackedLinear& linear, const OperandRow& x, float* y);

// Runs an encoder's linear layers on blocks of rows, with scratch for each thread. Many rows are
// cut into blocks that one thread each computes; few rows are one block, of whose matmuls each
// thread computes a slice of the columns. Thread-confined.
class BlockLinears {
 public:
  struct Scratch {                    // of a block
    TensorView<float, 2> matmul_out;  // [kMaxBlockRows, hidden], or s32
    // Room for [kMaxBlockRows, max(ffn_inputs, qkv_width)], or s32, or [rows, ffn] activated, or
    // the input before its projection.
    TensorView<float, 2> wide_matmul_out;
    Operand states;        // [kMaxBlockRows, hidden]
    Operand context;       // [kMaxBlockRows, context_width], int8 only; perhaps states
    Operand intermediate;  // [kMaxBlockRows, ffn]
  };

  // Throws std::exception. Scratch comes from `arena`; it and `layers` must outlive this object.
  BlockLinears(const PackedLayers& layers, int threads, FewRows few_rows, Arena& arena);

  BlockLinears(const BlockLinears&) = delete;
  BlockLinears& operator=(const BlockLinears&) = delete;

  // Sets the thread pool of the next calls.
  void Use(ThreadPool& pool) { pool_ = &pool; }
  int threads() const { return static_cast<int>(threads_.size()); }

  // True if all threads compute `rows` rows together, each a slice of the columns.
  bool Together(int64_t rows) const {
    return rows <= kMaxBlockRows && few_rows_ == FewRows::kTogether;
  }
  // Calls body(block) for the blocks of `rows` rows.
  template <typename Body>
  void ForEachBlock(int64_t rows, Body body);
  // Calls body(row, thread) for every row of the block, counted from its first.
  template <typename Body>
  void ForEachRow(const Block& block, Body body);
  // Calls body(index, thread) for every index in [0, tasks), on all threads.
  template <typename Body>
  void ForEachTask(int64_t tasks, Body body);

  // y = x w for the block's rows, or what the matmul makes of it.
  void Multiply(const Block& block, LayerLinear linear, const PackedLinear& weights,
                const Operand& x, void* y);
  // The first half of a feed-forward network: activation(x W_up + b_up), or gated.
  const Operand& Intermediate(const Block& block, const PackedLinear& up, const Operand& x);

  Scratch& ScratchOf(const Block& block) { return StateOf(block.thread).scratch; }
  // [max(ffn, hidden, input_width)]
  float* row_scratch(int thread) { return StateOf(thread).row_scratch; }

  void Fail(int thread) { StateOf(thread).failed = true; }
  void ForgetFailures();
  bool failed() const;  // a matmul, since then

 private:
  struct ThreadState {
    std::vector<LinearExecutor> executors;  // of matmuls_
    Scratch scratch;
    float* row_scratch = nullptr;
    bool failed = false;
  };

  ThreadState MakeThread(Arena& arena) const;
  Operand AllocateOperand(Arena& arena, int64_t columns) const;
  ThreadState& StateOf(int thread) { return threads_[static_cast<size_t>(thread)]; }
  void Activate(const Block& block, const PackedLinear& up, const Operand& x);

  const PackedLayers& layers_;
  const RowKernels& kernels_;
  DType dtype_;
  FewRows few_rows_;
  std::vector<SlicedMatmul> matmuls_;  // [kLinears], without the last if the encoder has none
  std::vector<ThreadState> threads_;
  ThreadPool* pool_ = nullptr;
};

template <typename Body>
void BlockLinears::ForEachTask(int64_t tasks, Body body) {
  pool_->ParallelFor(tasks, [&](int64_t index, int thread) {
    const ScopedDenormalFlush flush;  // whatever the pool's threads do
    body(index, thread);
  });
}

template <typename Body>
void BlockLinears::ForEachBlock(int64_t rows, Body body) {
  // One block's worth of rows is faster together than cut by rows, measured from 16 to 128 tokens
  // on two threads: 10 % at 112, where blocks of 64 and 48 rows end apart, equal where they do not.
  if (Together(rows)) return body(Block{.begin = 0, .rows = rows, .together = true});
  const RowBlocks blocks(rows, kMaxBlockRows, threads());
  ForEachTask(blocks.count(), [&](int64_t index, int thread) {
    const int64_t begin = blocks.begin(index);
    body(Block{.begin = begin, .rows = blocks.begin(index + 1) - begin, .thread = thread});
  });
}

template <typename Body>
void BlockLinears::ForEachRow(const Block& block, Body body) {
  if (!block.together) {
    for (int64_t row = 0; row < block.rows; ++row) body(row, block.thread);
    return;
  }
  const int64_t share = CeilDivide(block.rows, threads());
  pool_->ParallelFor(CeilDivide(block.rows, share), [&](int64_t index, int thread) {
    const int64_t end = std::min(block.rows, (index + 1) * share);
    for (int64_t row = index * share; row < end; ++row) body(row, thread);
  });
}

}  // namespace attendant::cpu
