// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/arena.h"
#include "kernels/core/threads/thread_pool.h"
#include "kernels/cpu/encoder/cpu_encoder.h"
#include "kernels/cpu/matmul/linear_executor.h"

namespace attendant::cpu {

// The two phases of a layer hand these rows of a batch to each other.
struct Activations {
  TensorView<float, 2> states;   // [max tokens, hidden]
  TensorView<std::byte, 2> qkv;  // [max tokens, 3 * hidden values of qkv_value_bytes]
  TensorView<float, 2> context;  // [max tokens, hidden], heads side by side; bf16 in bf16
  int64_t qkv_value_bytes = 0;
};

// Rows of the blocks that `tokens` rows are cut into: a multiple of kRowGranularity, at most
// `max_rows`, such that the threads get equally much where there is enough for all.
int64_t ChooseBlockRows(int64_t tokens, int64_t max_rows, int threads);

// Everything between one attention and the next:
//   attention output -> LayerNorm -> feed-forward -> LayerNorm -> the next layer's qkv
// Many rows are cut into blocks that one thread each takes through all of it, so that the block's
// intermediate stays in that thread's cache. Few rows are one block that all threads take through
// it together, each with a slice of every matmul's columns: then reading the weights is what takes
// the time, and each thread reads its part of them only. Thread-confined.
class RowPhase {
 public:
  // Throws std::exception. Scratch comes from `arena`; it and `encoder` must outlive the phase.
  RowPhase(const CpuEncoder& encoder, int threads, Arena& arena);

  RowPhase(const RowPhase&) = delete;
  RowPhase& operator=(const RowPhase&) = delete;

  // Finishes layer - 1 and begins `layer`, of 0 .. layers; layer 0 begins with the embeddings, the
  // last call ends with the states. False when a matmul failed. REQUIRES: pool.threads() threads.
  [[nodiscard]] bool Run(const PackedBatch& batch, int64_t layer, const Activations& activations,
                         ThreadPool& pool);

 private:
  // Rows of one block in the number format that matmuls read; in f32 they lie elsewhere.
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

  struct Scratch {                         // of a block
    TensorView<float, 2> matmul_out;       // [kMaxBlockRows, hidden], or s32
    TensorView<float, 2> wide_matmul_out;  // [kMaxBlockRows, max(ffn, 3 * hidden)], or s32
    Operand states;                        // [kMaxBlockRows, hidden]
    Operand intermediate;                  // [kMaxBlockRows, ffn]
  };

  struct ThreadState {
    LinearExecutor qkv, attention_output, ffn_up, ffn_down;
    Scratch scratch;
    float* row_scratch = nullptr;  // [ffn]
    bool failed = false;           // a matmul failed in this call
  };

  struct Block {
    int64_t begin = 0;
    int64_t rows = 0;
    int thread = 0;         // who computes it, and whose scratch it uses
    bool together = false;  // all threads do; the scratch is `thread`'s
  };

  struct Matmuls {
    SlicedMatmul qkv, attention_output, ffn_up, ffn_down;
  };

  ThreadState MakeThread(Arena& arena) const;
  Operand AllocateOperand(Arena& arena, int64_t columns) const;
  Scratch& ScratchOf(const Block& block) { return StateOf(block.thread).scratch; }
  ThreadState& StateOf(int thread) { return threads_[static_cast<size_t>(thread)]; }

  void RunBlock(const Block& block, int64_t layer);
  void Embed(const Block& block);
  void AddAttention(const Block& block, const PackedLayer& weights);
  void FeedForward(const Block& block, const PackedLayer& weights, const PackedLinear* next);
  void Normalize(const Block& block, const PackedLinear& linear, const Operand& operand,
                 const LayerNormArgs& norm, const PackedLinear* next);
  void ProjectQkv(const Block& block, const PackedLinear& linear);
  Operand ContextOperand(const Block& block);
  Operand StatesOperand(const Block& block);
  void Multiply(const Block& block, LinearExecutor ThreadState::*executor,
                const PackedLinear& linear, const void* x, const float* bias, void* y);
  template <typename Body>
  void ForEachRow(const Block& block, Body body);

  const CpuEncoder& encoder_;
  const RowKernels& kernels_;
  DType dtype_;
  Matmuls matmuls_;
  std::vector<ThreadState> threads_;

  // Of the running call.
  const PackedBatch* batch_ = nullptr;
  Activations activations_;
  ThreadPool* pool_ = nullptr;
};

}  // namespace attendant::cpu
