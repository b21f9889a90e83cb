// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/heads/packed_token_head.h"

#include <algorithm>
#include <utility>

#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"
#include "kernels/cpu/simd/activation_kernel.h"

namespace attendant::cpu {
namespace {

int64_t YBytes(const PackedTokenHead& head) {
  const int64_t columns = std::max(head.width(), head.out().columns());
  return kHeadRows * columns * static_cast<int64_t>(sizeof(float));
}

int64_t StatesBytes(const PackedTokenHead& head) {
  return head.converts_apart() ? kHeadRows * head.hidden() * head.compute().operand_bytes() : 0;
}

}  // namespace

absl::StatusOr<PackedTokenHead> PackedTokenHead::Create(const HeadCompute& compute,
                                                        const TokenHead& head, int64_t columns) {
  ATTENDANT_ASSIGN_OR_RETURN(RowLinear out, RowLinear::Create(compute, head.out, columns));
  PackedTokenHead packed(compute, std::move(out));
  if (head.dense.weight.empty()) return packed;
  ATTENDANT_ASSIGN_OR_RETURN(packed.dense_, RowLinear::Create(compute, head.dense));
  packed.activation_ = head.activation;
  packed.epsilon_ = head.norm_epsilon;
  for (int64_t i = 0; i < packed.width(); ++i) {
    packed.gamma_.push_back(head.norm.gamma.data()[i]);
    packed.beta_.push_back(BiasAt(head.norm.beta, i));
  }
  packed.zeros_.resize(packed.gamma_.size());
  return packed;
}

int64_t PackedTokenHead::bytes() const {
  const size_t floats = gamma_.size() + beta_.size() + zeros_.size();
  return out_.bytes() + (dense_ ? dense_->bytes() : 0) +
         static_cast<int64_t>(floats * sizeof(float));
}

// row = norm(activation(row)), in f32
void PackedTokenHead::Transform(float* row) const {
  const RowKernels& kernels = compute_.level.kernels.f32;
  const RowKernels::Activate activate = ActivationKernel(kernels.activate, activation_);
  activate({.values = row}, zeros_.data(), width(), nullptr, {.values = row});
  kernels.layer_norm(
      row, {.gamma = gamma_.data(), .beta = beta_.data(), .hidden = width(), .epsilon = epsilon_},
      {});
}

PackedTokenHead::Thread::Thread(const PackedTokenHead& head)
    : head_(&head),
      out_(head.out_),
      memory_(RoundUp(StatesBytes(head), Arena::kAlignment) +
              RoundUp(kHeadRows * head.operand_row_bytes(), Arena::kAlignment) +
              RoundUp(YBytes(head), Arena::kAlignment)),
      states_(head.converts_apart() ? memory_.Allocate<std::byte>(StatesBytes(head)) : nullptr),
      operand_(memory_.Allocate<std::byte>(kHeadRows * head.operand_row_bytes())),
      y_(memory_.Allocate<float>(YBytes(head) / static_cast<int64_t>(sizeof(float)))) {
  if (head.dense_) dense_.emplace(*head.dense_);
}

bool PackedTokenHead::Thread::ReadStates(std::span<const float* const> states, std::byte* operand) {
  const int64_t hidden = head_->hidden(), width = head_->width();
  const int64_t value_bytes = head_->compute_.operand_bytes();
  const auto rows = static_cast<int64_t>(states.size());
  std::byte* const converted = states_ != nullptr ? states_ : operand;
  for (int64_t i = 0; i < rows; ++i) {
    head_->compute_.Convert(states[static_cast<size_t>(i)], hidden,
                            converted + i * hidden * value_bytes);
  }
  if (!dense_) return true;
  if (!dense_->Run(0, rows, converted, y_)) return false;
  for (int64_t i = 0; i < rows; ++i) {
    float* row = y_ + i * width;
    head_->Transform(row);
    head_->compute_.Convert(row, width, operand + i * width * value_bytes);
  }
  return true;
}

}  // namespace attendant::cpu
