// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/core/arena.h"
#include "kernels/core/threads/thread_pool.h"
#include "kernels/cpu/encoder/block_linears.h"
#include "kernels/cpu/encoder/experts.h"
#include "kernels/cpu/encoder/packed_layers.h"

namespace attendant::cpu {

// The rows of a batch that the two phases of a layer hand to each other.
struct Activations {
  Activations() = default;
  Activations(const PackedLayers& layers, int64_t max_tokens, Arena& arena);
  // All but the states.
  static Activations WithoutStates(const PackedLayers& layers, int64_t max_tokens, Arena& arena);

  TensorView<float, 2> states;   // [max tokens, hidden], and room for RoundUpRows(max tokens)
  TensorView<std::byte, 2> qkv;  // [max tokens, qkv_width], bf16 where the kernels have it so
  TensorView<float, 2> context;  // [max tokens, context_width], heads side by side; bf16 in bf16
  Choices choices;               // of the layers that have experts
};

// The layers of an encoder. A layer is two phases with a barrier after each: the caller's
// attention, and all that works on rows, from one attention to the next:
//   attention output -> norm -> feed-forward -> norm -> the next layer's qkv -> rotary positions
// with norms where the configuration has them. Many rows are cut into blocks that one thread each
// takes through all of it, so that the block's intermediate stays in that thread's cache. Few rows
// are one block that all threads take through it together, each with a slice of every matmul's
// columns: then reading the weights is what takes the time, and each thread reads its part of them
// only. In a layer with experts the rows meet between the two norms, to be ordered by their
// experts. Thread-confined.
class LayerRunner {
 public:
  struct Tokens {
    int64_t count;
    // The number of tokens whose last states are computed; the last layer's attention moves their
    // rows to the front.
    int64_t last_count;
    std::span<const int32_t> positions = {};  // [count] if the encoder's are rotary
  };
  // Writes the input of a row, [input_width]: its first states, or what the projection makes them
  // of. `scratch` [input_width] is the thread's.
  using Input = absl::FunctionRef<void(int64_t row, float* input, float* scratch)>;
  // Writes the context of a layer, whose qkv is there; the states are the input of the layer. The
  // last layer's may move rows of both, so that those that count come first.
  using Attention = absl::FunctionRef<absl::Status(int64_t layer)>;

  // Throws std::exception. Scratch comes from `arena`; it and `layers` must outlive the runner.
  LayerRunner(const PackedLayers& layers, int threads, FewRows few_rows, Arena& arena);

  LayerRunner(const LayerRunner&) = delete;
  LayerRunner& operator=(const LayerRunner&) = delete;

  // All layers, from the input to the last states. INTERNAL when a matmul failed; else what an
  // attention returned. REQUIRES: pool.threads() threads; `activations` has room for the tokens.
  absl::Status Run(const Tokens& tokens, Input input, Attention attention,
                   const Activations& activations, ThreadPool& pool);

 private:
  // The next reader of the states: a linear layer, and the norm before it. Null: no layer reads
  // them; no norm.
  struct Next {
    const PackedLinear* linear = nullptr;
    const PackedNorm* norm = nullptr;
  };

  bool pre_norm() const { return layers_.config.norm_place != NormPlace::kPost; }
  // The rows of a batch before layer `layer`'s attention, of 0 .. layers. False: a matmul failed.
  bool RunRows(int64_t tokens, int64_t layer);
  void RunBlock(const Block& block, int64_t layer);
  void RunExperts(int64_t tokens, int64_t layer);
  void ReadForExperts(const Block& block, const PackedLayer& weights);
  float* ExpertInputs(int64_t row) const;
  void AddExperts(const Block& block, const PackedLayer& weights, const Next& next);
  void Leave(const Block& block, const Next& next, int64_t layer);
  void ReadInput(const Block& block, const Next& next);
  void ProjectInput(const Block& block);
  void AddAttention(const Block& block, const PackedLayer& weights, const Next& next);
  void FeedForward(const Block& block, const PackedLayer& weights, const Next& next);
  void AddBranch(const Block& block, LayerLinear which, const PackedLayer& weights,
                 const Operand& operand, const Next& next);
  void AddNormed(float* states, const MatmulRow& matmul, const OperandRow& x,
                 const PackedLinear& linear, const PackedNorm& norm, int thread);
  void WriteNext(float* states, const Next& next, const OperandRow& operand, int thread);
  Next NextAttention(int64_t layer) const;
  void ProjectQkv(const Block& block, const Next& next, int64_t layer);
  void PlaceQueriesAndKeys(const Block& block, int64_t layer);
  LayerNormArgs BesideStates(LayerNormArgs norm, const OperandRow& operand, int thread);
  OperandRow NextOperand(const Block& block, int64_t row, const Next& next);
  Operand ContextOperand(const Block& block);
  Operand StatesOperand(const Block& block, const PackedNorm* norm);

  const PackedLayers& layers_;
  const RowKernels& kernels_;
  DType dtype_;
  BlockLinears blocks_;
  Experts experts_;

  // Of the running call.
  std::span<const int32_t> positions_;
  const Input* input_ = nullptr;
  const Activations* activations_ = nullptr;
};

}  // namespace attendant::cpu
