// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul/linear_executor.h"

#include <algorithm>

namespace attendant::cpu {
namespace {

// Of the columns from `column` on.
MatmulTerms TermsFrom(int64_t column, const Matmul::Options& options, const PackedLinear& linear,
                      const RowQuantization* quantization) {
  if (!options.bias) return {};
  if (options.dtype != DType::kInt8) return {.bias = linear.bias.data() + column};
  return {.bias = linear.bias.data() + column,
          .quantization = quantization,
          .column_scales = linear.column_scales.data() + column,
          .column_offsets = linear.column_offsets.data() + column};
}

}  // namespace

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

LinearExecutor::LinearExecutor(const SlicedMatmul& matmul, void* scratchpad)
    : matmul_(&matmul),
      whole_(matmul.whole().NewExecutor(scratchpad)),
      slice_(matmul.slices() == 1 ? nullptr : matmul.slice().NewExecutor(scratchpad)) {}

bool LinearExecutor::Run(int64_t rows, const void* x, const RowQuantization* quantization,
                         const PackedLinear& linear, void* y) {
  return whole_->Run(rows, x, linear.weight,
                     TermsFrom(0, matmul_->whole().options(), linear, quantization), y);
}

bool LinearExecutor::RunSlice(int64_t index, int64_t rows, const void* x,
                              const RowQuantization* quantization, const PackedLinear& linear,
                              void* y) {
  if (slice_ == nullptr) return Run(rows, x, quantization, linear, y);
  const Matmul& slice = matmul_->slice();
  const Matmul::Options& options = slice.options();
  const int64_t column = index * options.n;
  return slice_->Run(
      rows, x, linear.weight + index * slice.packed_bytes(),
      TermsFrom(column, options, linear, quantization),
      static_cast<std::byte*>(y) + options.y_width(column) * options.y_value_bytes());
}

}  // namespace attendant::cpu
