// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/heads/row_linear.h"

#include <algorithm>
#include <utility>

#include "kernels/core/base/int_math.h"
#include "kernels/core/status_macros.h"

namespace attendant::cpu {

void HeadCompute::Convert(const float* x, int64_t count, void* operand) const {
  if (dtype == DType::kBf16) return level.kernels.bf16.convert(x, count, {.values = operand});
  std::copy_n(x, count, static_cast<float*>(operand));
}

absl::StatusOr<RowLinear> RowLinear::Create(const HeadCompute& compute,
                                            const LinearWeights& weights, int64_t columns) {
  RowLinear linear;
  linear.outputs_ = weights.weight.dim(0);
  if (columns == 0) columns = linear.outputs_;
  linear.slices_ = CeilDivide(linear.outputs_, columns);
  ATTENDANT_ASSIGN_OR_RETURN(linear.matmul_,
                             CreateMatmul(compute.level, {.dtype = compute.dtype,
                                                          .k = weights.weight.dim(1),
                                                          .n = columns,
                                                          .max_rows = kHeadRows,
                                                          .bias = true}));
  linear.slice_bytes_ = RoundUp(linear.matmul_->packed_bytes(), Arena::kAlignment);
  linear.memory_ = Arena(linear.slices_ * linear.slice_bytes_);
  linear.packed_ = linear.memory_.Allocate<std::byte>(linear.slices_ * linear.slice_bytes_);
  linear.Pack(weights);
  return linear;
}

void RowLinear::Pack(const LinearWeights& weights) {
  const int64_t count = columns(), k = inputs();
  bias_.assign(static_cast<size_t>(slices_ * count), 0.0f);
  for (int64_t i = 0; i < outputs_; ++i) {
    bias_[static_cast<size_t>(i)] = BiasAt(weights.bias, i);
  }
  for (int64_t slice = 0; slice < slices_; ++slice) {
    std::byte* storage = packed_ + slice * slice_bytes_;
    const float* rows = weights.weight.row(slice * count);
    const int64_t there = std::min(count, outputs_ - slice * count);
    if (there == count) {
      matmul_->Pack(TensorView<const float, 2>(rows, {count, k}), storage);
      continue;
    }
    std::vector<float> filled(static_cast<size_t>(count * k));
    std::copy_n(rows, there * k, filled.begin());
    matmul_->Pack(TensorView<const float, 2>(filled.data(), {count, k}), storage);
  }
}

int64_t RowLinear::bytes() const {
  return memory_.used_bytes() + static_cast<int64_t>(bias_.size() * sizeof(float));
}

RowLinear::Executor::Executor(const RowLinear& linear)
    : linear_(&linear),
      scratchpad_(
          std::make_unique<Arena>(static_cast<int64_t>(linear.matmul_->scratchpad_bytes()))) {
  const auto bytes = static_cast<int64_t>(linear.matmul_->scratchpad_bytes());
  matmul_ = linear.matmul_->NewExecutor(scratchpad_->Allocate<std::byte>(bytes));
}

bool RowLinear::Executor::Run(int64_t slice, int64_t rows, const void* x, float* y) {
  return matmul_->Run(rows, x, linear_->packed_ + slice * linear_->slice_bytes_,
                      {.bias = linear_->bias_.data() + slice * linear_->columns()}, y);
}

}  // namespace attendant::cpu
