// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/arena.h"
#include "kernels/cpu/encoder/block_linears.h"
#include "kernels/cpu/encoder/packed_layers.h"
#include "kernels/cpu/matmul/linear_executor.h"

namespace attendant::cpu {

// The values that the phases of a mixture of experts hand to each other, for the rows of a
// section. A choice is one of the experts of a row: choice row * experts_per_token + i is the one
// of its i-th largest weight.
struct Choices {
  Choices() = default;
  // Nothing where no layer has experts.
  Choices(const PackedLayers& layers, int64_t max_tokens, Arena& arena);

  // [max tokens, hidden], and room for RoundUpRows(max tokens): what experts read, where that is
  // not the states.
  TensorView<float, 2> inputs;
  int32_t* experts = nullptr;    // [choices]
  float* weights = nullptr;      // [choices]
  int32_t* places = nullptr;     // [choices], among those of all rows, ordered by their experts
  int32_t* rows = nullptr;       // [places]
  TensorView<float, 2> outputs;  // [places, hidden], before they are weighted
};

// The feed-forward network of layers that have experts: each row goes to a few of them. Rows of a
// whole section are ordered by their experts, so that a matmul has rows enough; what an expert
// makes of a row does not depend on the others, and a row's sum is in the order of its choices: its
// bits are the same in every batch. Thread-confined.
class Experts {
 public:
  // Throws std::exception. `layers`, `blocks` and the memory must outlive this object.
  Experts(const PackedLayers& layers, BlockLinears& blocks, Arena& arena);

  // Chooses for the block's rows; x [rows of the block, hidden] is what the router reads.
  void Choose(const Block& block, const PackedExperts& experts, const float* x,
              const Choices& choices);
  // Computes the outputs of the chosen experts for x [tokens, hidden].
  void Compute(int64_t tokens, const PackedExperts& experts, const float* x,
               const Choices& choices);
  // y [hidden] = the weighted sum of a row's outputs, plus the bias.
  void Sum(int64_t row, const PackedExperts& experts, const Choices& choices, float* y) const;

 private:
  // Some places of one expert.
  struct Group {
    size_t expert = 0;
    int64_t begin = 0, end = 0;
  };

  struct Router {  // of a thread
    LinearExecutor matmul;
    TensorView<float, 2> scores;  // [kMaxBlockRows, experts]
  };

  void Order(int64_t tokens, const Choices& choices);
  int64_t rows_of(size_t expert) const { return begins_[expert + 1] - begins_[expert]; }
  Group FindGroup(int64_t index, int64_t max_rows) const;
  void ComputeGroup(const Block& block, const Group& group, const PackedExperts& experts,
                    const float* x, const Choices& choices);

  const PackedLayers& layers_;
  const RowKernels& kernels_;
  const int64_t count_, per_token_;
  BlockLinears& blocks_;
  std::unique_ptr<SlicedMatmul> router_;  // none: no layer has experts
  std::vector<Router> routers_;           // [threads]
  std::vector<int64_t> begins_;           // [experts + 1]: the places of each expert
  std::vector<int64_t> next_;             // [experts]: its next free place
};

}  // namespace attendant::cpu
