// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/arena.h"
#include "kernels/core/encoder_weights.h"
#include "kernels/cpu/matmul/matmul.h"
#include "kernels/cpu/matmul/packed_linear.h"

namespace attendant::attention {

// Rows of a block that one thread projects at a time: enough for the matmul's full speed.
inline constexpr int64_t kBlockRows = 128;

// The matmuls of a module: one for each shape, shared by all its projections.
class MatmulCache {
 public:
  MatmulCache(DType dtype, const cpu::VectorKernels& kernels) : dtype_(dtype), kernels_(kernels) {}

  struct Shape {
    int64_t inputs;
    int64_t outputs;
    bool bias;           // added in the matmul
    bool dtype_outputs;  // rounded to the dtype; else f32
    auto operator<=>(const Shape&) const = default;
  };
  absl::StatusOr<std::shared_ptr<const cpu::Matmul>> Get(const Shape& shape);

  DType dtype() const { return dtype_; }
  int64_t scratchpad_bytes() const { return scratchpad_bytes_; }  // the largest

 private:
  DType dtype_;
  const cpu::VectorKernels& kernels_;
  int64_t scratchpad_bytes_ = 0;
  std::map<Shape, std::shared_ptr<const cpu::Matmul>> matmuls_;
};

// One linear map y = x weight^T + bias with its weights packed. Immutable, thread-safe.
class ModuleLinear {
 public:
  struct Options {
    bool add_bias = true;        // in the matmul; else the bias is for the caller to add
    bool dtype_outputs = false;  // y in the cache's dtype; else f32
  };
  static absl::StatusOr<ModuleLinear> Create(MatmulCache& cache, const LinearWeights& weights,
                                             const Options& options);

  int64_t inputs() const { return matmul_->options().k; }
  int64_t outputs() const { return matmul_->options().n; }
  const float* bias() const { return packed_.bias.data(); }  // [outputs], zeros if there was none
  int64_t bytes() const { return packed_.bytes(); }
  const cpu::Matmul& matmul() const { return *matmul_; }
  bool adds_bias() const { return matmul_->options().bias; }
  const std::byte* weight() const { return packed_.weight; }

 private:
  ModuleLinear() = default;

  std::shared_ptr<const cpu::Matmul> matmul_;
  std::unique_ptr<Arena> arena_;  // of the packed weight
  cpu::PackedLinear packed_;
};

// One thread's means to run projections, during one call: what runs a shape is made when the shape
// is first met.
class ModuleLinearExecutor {
 public:
  // `scratchpad` has the largest scratchpad of the projections.
  explicit ModuleLinearExecutor(std::byte* scratchpad) : scratchpad_(scratchpad) {}

  // y [rows, outputs] = x [rows, inputs] weight^T [+ bias]. x and y have room for
  // cpu::RoundUpRows(rows) rows. REQUIRES: rows at most kBlockRows. A failure is remembered.
  void Run(const ModuleLinear& linear, int64_t rows, const void* x, void* y);

  bool failed() const { return failed_; }

 private:
  std::byte* scratchpad_;
  std::vector<std::pair<const cpu::Matmul*, std::unique_ptr<cpu::MatmulExecutor>>> executors_;
  bool failed_ = false;
};

}  // namespace attendant::attention
