// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cuda/engine/batch_layout.h"
#include "kernels/cuda/engine/session_buffers.h"
#include "kernels/cuda/model/model.h"

namespace attendant::cuda {

// One kind of matmul on numbers of very different sizes whose sums are nearly zero: what is left
// of them are rounding errors, in which every other order of the sums shows. (Numbers in [-1, 1) do
// not do: rounding to bf16 hides nearly all that f32 sums differ in, so that sums in reverse order
// passed for 16 rows of 64, and sums of e4m3 are exact.)
class MatmulProbe {
 public:
  MatmulProbe(const Model& model, const MatmulContext& context, const DeviceBuffers& buffers,
              int64_t rows, cudaStream_t stream)
      : model_(model), context_(context), buffers_(buffers), rows_(rows), stream_(stream) {}

  Status SelectKind(MatmulKind kind);

  // Takes the results of `algorithm` for all rows as the reference for others.
  Status SetReference(const cublasLtMatmulAlgo_t& algorithm);
  // same = `algorithm` gives the reference's bits for a matmul of `rows` rows.
  Status HasSameBits(const cublasLtMatmulAlgo_t& algorithm, int64_t rows, bool& same);
  // The same for the fewest and the most rows of a class; false where it does not compute them.
  Status SuitsClass(const cublasLtMatmulAlgo_t& algorithm, int row_class, bool& suits);
  Status Time(const cublasLtMatmulAlgo_t& algorithm, int64_t rows, float& milliseconds);

  const MatmulContext& context() const { return context_; }
  const MatmulShape& shape() const { return shape_; }
  int64_t most_of_class(int row_class) const { return std::min(LargestOfClass(row_class), rows_); }

 private:
  Status Run(const cublasLtMatmulAlgo_t& algorithm, int64_t rows) {
    return Multiply(context_, shape_, args_, rows, algorithm, stream_);
  }
  Status Synchronize() { return Check(cudaStreamSynchronize(stream_), "trying a matmul"); }
  int64_t operand_bytes() const {
    return context_.dtype == DType::kFp8 ? 1 : StateBytes(context_.dtype);
  }
  int64_t row_bytes() const { return shape_.outputs * StateBytes(context_.dtype); }
  // device [rows, inputs] = random numbers, the second half of a row `sign` times the first.
  Status FillOperand(int64_t rows, float sign, void* device);
  // device [count] = numbers in [0.5, 1.5)
  Status FillScales(int64_t count, void* device);
  Status Send(std::byte* device, int64_t bytes);
  float NextRandom();  // in [-1, 1)
  float NextSpread();  // in (-256, 256), as many small as large ones
  // Copies bytes of the result to the host.
  Status Read(int64_t begin, int64_t bytes, std::byte* to);
  // same = rows [begin, end) of the result have the reference's bits.
  Status CompareRows(int64_t begin, int64_t end, bool& same);

  const Model& model_;
  MatmulContext context_;
  const DeviceBuffers& buffers_;
  int64_t rows_;
  cudaStream_t stream_;
  int64_t pinned_bytes_ = 0;
  PinnedMemory pinned_;
  DeviceMemory linear_;  // weight, scales, a bias of zeros
  Event begin_, end_;
  MatmulShape shape_;
  MatmulOperands args_{};
  uint32_t random_ = 12345;
  std::vector<std::byte> reference_;  // [min(rows, kReferenceRows), outputs]
};

}  // namespace attendant::cuda
