// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/encoder/experts.h"

#include <algorithm>
#include <numeric>

#include "kernels/core/base/int_math.h"
#include "kernels/cpu/encoder/expert_choice.h"

namespace attendant::cpu {

Choices::Choices(const PackedLayers& layers, int64_t max_tokens, Arena& arena) {
  const EncoderConfig& config = layers.config;
  if (config.expert_layers.none()) return;
  const int64_t choices = max_tokens * config.experts_per_token;
  if (config.norm_place != NormPlace::kPost) {
    inputs = arena.Allocate2<float>(RoundUpRows(max_tokens), config.hidden);
  }
  experts = arena.Allocate<int32_t>(choices);
  weights = arena.Allocate<float>(choices);
  places = arena.Allocate<int32_t>(choices);
  rows = arena.Allocate<int32_t>(choices);
  outputs = arena.Allocate2<float>(choices, config.hidden);
}

Experts::Experts(const PackedLayers& layers, BlockLinears& blocks, Arena& arena)
    : layers_(layers),
      kernels_(layers.rows),
      count_(layers.config.experts),
      per_token_(layers.config.experts_per_token),
      blocks_(blocks) {
  if (layers.router_matmul == nullptr) return;
  router_ = std::make_unique<SlicedMatmul>(*layers.router_matmul, 1, kMaxBlockRows);
  for (int i = 0; i < blocks.threads(); ++i) {
    auto* const scratchpad =
        arena.Allocate<std::byte>(static_cast<int64_t>(router_->scratchpad_bytes()));
    routers_.push_back(
        {LinearExecutor(*router_, scratchpad), arena.Allocate2<float>(kMaxBlockRows, count_)});
  }
  begins_.resize(static_cast<size_t>(count_) + 1);
  next_.resize(static_cast<size_t>(count_));
}

void Experts::Choose(const Block& block, const PackedExperts& experts, const float* x,
                     const Choices& choices) {
  Router& router = routers_[static_cast<size_t>(block.thread)];
  if (!router.matmul.Run(block.rows, x, nullptr, experts.router, router.scores.data())) {
    blocks_.Fail(block.thread);
  }
  blocks_.ForEachRow(block, [&](int64_t row, int) {
    const int64_t first = (block.begin + row) * per_token_;
    ChooseExperts({router.scores.row(row), static_cast<size_t>(count_)},
                  {choices.experts + first, static_cast<size_t>(per_token_)},
                  {choices.weights + first, static_cast<size_t>(per_token_)});
  });
}

// Places by a counting sort, which keeps the order of an expert's rows.
void Experts::Order(int64_t tokens, const Choices& choices) {
  const int64_t count = tokens * per_token_;
  std::fill(begins_.begin(), begins_.end(), 0);
  for (int64_t i = 0; i < count; ++i) ++begins_[static_cast<size_t>(choices.experts[i]) + 1];
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  std::copy_n(begins_.begin(), next_.size(), next_.begin());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = next_[static_cast<size_t>(choices.experts[i])]++;
    choices.places[i] = static_cast<int32_t>(place);
    choices.rows[place] = static_cast<int32_t>(i / per_token_);
  }
}

// Group `index` of all, of about as many rows as the others of its expert.
Experts::Group Experts::FindGroup(int64_t index, int64_t max_rows) const {
  size_t expert = 0;
  int64_t groups = CeilDivide(rows_of(0), max_rows);
  while (index >= groups) {
    index -= groups;
    groups = CeilDivide(rows_of(++expert), max_rows);
  }
  const int64_t rows = rows_of(expert), begin = begins_[expert];
  return {.expert = expert,
          .begin = begin + index * rows / groups,
          .end = begin + (index + 1) * rows / groups};
}

void Experts::Compute(int64_t tokens, const PackedExperts& experts, const float* x,
                      const Choices& choices) {
  Order(tokens, choices);
  const bool together = blocks_.Together(tokens);
  // As many rows as a thread's share, if that is less than a block.
  const int64_t share = RoundUpRows(CeilDivide(tokens * per_token_, blocks_.threads()));
  const int64_t max_rows = together ? kMaxBlockRows : std::min(kMaxBlockRows, share);
  int64_t groups = 0;
  for (size_t i = 0; i < next_.size(); ++i) groups += CeilDivide(rows_of(i), max_rows);
  const auto compute = [&](int64_t index, int thread) {
    const Group group = FindGroup(index, max_rows);
    ComputeGroup({.rows = group.end - group.begin, .thread = thread, .together = together}, group,
                 experts, x, choices);
  };
  if (!together) return blocks_.ForEachTask(groups, compute);
  for (int64_t i = 0; i < groups; ++i) compute(i, 0);
}

void Experts::ComputeGroup(const Block& block, const Group& group, const PackedExperts& experts,
                           const float* x, const Choices& choices) {
  const PackedLinear &up = experts.up[group.expert], &down = experts.down[group.expert];
  const BlockLinears::Scratch& scratch = blocks_.ScratchOf(block);
  const int64_t hidden = layers_.config.hidden;
  blocks_.ForEachRow(block, [&](int64_t row, int) {
    const float* from = x + choices.rows[group.begin + row] * hidden;
    const OperandRow to = scratch.states.row(row, SmoothingOf(up));
    if (layers_.dtype != DType::kF32) return kernels_.convert(from, hidden, to);
    std::copy_n(from, hidden, static_cast<float*>(to.values));
  });
  const Operand& inner = blocks_.Intermediate(block, up, scratch.states);
  float* const outputs = choices.outputs.row(group.begin);
  std::fill_n(outputs, block.rows * hidden, 0.0f);
  const bool adds = layers_.matmuls[kFfnDown]->options().output == MatmulOutput::kAdded;
  blocks_.Multiply(block, kFfnDown, down, inner, adds ? outputs : scratch.matmul_out.data());
  blocks_.ForEachRow(block, [&](int64_t row, int) {
    float* const y = outputs + row * hidden;
    const OperandRow operand = inner.row(row);
    AddOutliers(down, operand, y);
    if (adds) return;
    kernels_.add_layer_norm(y, RowOf(scratch.matmul_out, row, operand, down), down.bias.data(),
                            {.hidden = hidden}, {});
  });
}

void Experts::Sum(int64_t row, const PackedExperts& experts, const Choices& choices,
                  float* y) const {
  const int64_t hidden = layers_.config.hidden;
  std::copy_n(experts.bias.data(), hidden, y);
  for (int64_t i = row * per_token_; i < (row + 1) * per_token_; ++i) {
    const float weight = choices.weights[i];
    const float* output = choices.outputs.row(choices.places[i]);
    for (int64_t j = 0; j < hidden; ++j) y[j] += weight * output[j];
  }
}

}  // namespace attendant::cpu
