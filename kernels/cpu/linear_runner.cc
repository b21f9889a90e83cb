// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear_runner.h"

#include <algorithm>

namespace attendant::cpu {

SlicedMatmul::SlicedMatmul(const Matmul& whole, int64_t slices, int64_t max_rows)
    : whole_(&whole), slices_(whole.CountSlices(slices)) {
  if (slices_ == 1) return;
  absl::StatusOr<std::unique_ptr<Matmul>> slice = whole.CreateSlice(slices_, max_rows);
  // A slice that oneDNN has no fast kernel for is not worth having: then one thread does it all.
  if (slice.ok()) {
    slice_ = *std::move(slice);
  } else {
    slices_ = 1;
  }
}

size_t SlicedMatmul::scratchpad_bytes() const {
  return std::max(whole().scratchpad_bytes(), slice().scratchpad_bytes());
}

LinearRunner::LinearRunner(const SlicedMatmul& matmul, void* scratchpad)
    : matmul_(&matmul),
      whole_(matmul.whole().NewRunner(scratchpad)),
      slice_(matmul.slice().NewRunner(scratchpad)) {}

bool LinearRunner::Run(int64_t rows, const LinearOperand& x, const PackedLinear& linear, void* y) {
  return whole_->Run(rows, OperandsFrom(0, x, linear, y));
}

bool LinearRunner::RunSlice(int64_t index, int64_t rows, const LinearOperand& x,
                            const PackedLinear& linear, void* y) {
  const Matmul& slice = matmul_->slice();
  const int64_t column = index * slice.options().n;
  MatmulRunner::Operands operands = OperandsFrom(column, x, linear, y);
  operands.weight = linear.weight + index * slice.packed_bytes();
  return slice_->Run(rows, operands);
}

// Those of the product's columns from `column` on, but for the weight's.
MatmulRunner::Operands LinearRunner::OperandsFrom(int64_t column, const LinearOperand& x,
                                                  const PackedLinear& linear, void* y) const {
  const Matmul::Options& options = matmul_->whole().options();
  MatmulRunner::Operands operands{
      .x = x.values,
      .weight = linear.weight,
      .y = static_cast<std::byte*>(y) + column * options.y_value_bytes()};
  if (!options.bias) return operands;
  operands.bias = linear.bias.data() + column;
  if (options.dtype != DType::kInt8) return operands;
  operands.quantization = x.quantization;
  operands.column_scales = linear.column_scales.data() + column;
  operands.column_offsets = linear.column_offsets.data() + column;
  return operands;
}

}  // namespace attendant::cpu
