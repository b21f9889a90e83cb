// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/core/backend.h"
#include "kernels/core/shape.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace attendant::cpu {

// Row counts are rounded up to this: few primitives exist, and oneDNN gives a row the same bits for
// every m above 1 (m = 1 with a large k is split along k, which changes the order of its sum).
inline constexpr int64_t kRowGranularity = 16;
inline int64_t RoundUpRows(int64_t rows) {
  return (rows + kRowGranularity - 1) / kRowGranularity * kRowGranularity;
}

// Makes oneDNN compute with the calling thread alone, where it was built with OpenMP: parallelism
// is ours. Cheap; every thread calls it before its first primitive.
void UseOneThreadPerCall();

// oneDNN's matrix products y = x w [+ bias] for one (k, n): x [m, k], w [k, n] in oneDNN's own
// packed layout, y [m, n], for every m that is a multiple of kRowGranularity up to max_rows.
//   f32   x f32, w f32, y f32
//   bf16  x bf16, w bf16, y f32
//   int8  x u8, w s8, y s32, no bias
// Compiled when created; immutable and thread-safe afterwards.
class Matmul {
 public:
  struct Options {
    DType dtype = DType::kF32;
    int64_t k = 0;
    int64_t n = 0;
    int64_t max_rows = 0;
    bool bias = false;
    bool bf16_output = false;  // of a bf16 product, instead of f32
    int64_t y_columns = 0;     // values from one row of y to the next; 0: n
  };

  // INTERNAL when oneDNN fails; UNIMPLEMENTED when it has only a slow kernel for this machine.
  static absl::StatusOr<Matmul> Create(const dnnl::engine& engine, const Options& options);

  // Into how many equal slices of columns, at most `limit`, a packed weight can be cut so that each
  // lies in one piece.
  int64_t CountSlices(int64_t limit) const;
  // The product of one such slice: slice i reads the packed weight from i * packed_bytes() of the
  // result on, and its n / slices columns of y keep the row stride of the whole. A value's bits are
  // those of the whole product. REQUIRES: CountSlices(slices) == slices. Fails like Create.
  absl::StatusOr<Matmul> CreateSlice(int64_t slices, int64_t max_rows) const;

  // Packs a weight [n, k] as PyTorch stores it: f32 values, rounded where the format is bf16, or,
  // for int8, s8 values. The result lies in `storage`, packed_bytes() bytes.
  void Pack(TensorView<const float, 2> weight, void* storage) const;
  void Pack(TensorView<const int8_t, 2> weight, void* storage) const;
  int64_t packed_bytes() const { return packed_bytes_; }

  const Options& options() const { return options_; }
  // oneDNN's name for what it chose, e.g. "brg_matmul:avx512_core_bf16".
  std::string implementation() const { return variants_.back().desc.impl_info_str(); }
  int64_t y_value_bytes() const { return options_.bf16_output ? 2 : 4; }
  size_t scratchpad_bytes() const { return scratchpad_bytes_; }

 private:
  friend class MatmulRunner;

  struct Variant {  // for one m
    dnnl::matmul::primitive_desc desc;
    dnnl::matmul primitive;
  };

  static absl::StatusOr<Matmul> Compile(const dnnl::engine& engine, const Options& options,
                                        const dnnl::memory::desc& weight);
  void PackValues(const void* values, dnnl::memory::data_type type, void* storage) const;
  dnnl::memory::desc weight_desc() const { return variants_.front().desc.weights_desc(); }
  const Variant& ForRows(int64_t rows) const {
    return variants_[static_cast<size_t>(rows / kRowGranularity - 1)];
  }

  Options options_;
  dnnl::engine engine_;
  std::vector<Variant> variants_;  // ascending m
  size_t scratchpad_bytes_ = 0;
  int64_t packed_bytes_ = 0;
  int64_t call_rows_ = 0;  // the most that one call of oneDNN gets
};

// One thread's means to run the products of one Matmul: memory objects are made once and pointed at
// the operands. Thread-confined. `matmul` must outlive it.
class MatmulRunner {
 public:
  MatmulRunner(const Matmul& matmul, const dnnl::stream& stream, void* scratchpad);

  // y [rows, n] = x [rows, k] w [+ bias [n]]. REQUIRES: rows is a multiple of kRowGranularity and
  // at most max_rows; `bias` exactly when the Matmul has one. False when oneDNN fails.
  [[nodiscard]] bool Run(int64_t rows, const void* x, const void* packed_weight, const float* bias,
                         void* y);

 private:
  struct Operands {
    dnnl::memory x, y, bias, scratchpad;
  };

  bool RunCall(int64_t rows, const void* x, const void* packed_weight, const float* bias, void* y);

  const Matmul* matmul_;
  dnnl::stream stream_;
  dnnl::memory weight_;
  std::vector<Operands> operands_;  // ascending m
};

}  // namespace attendant::cpu
