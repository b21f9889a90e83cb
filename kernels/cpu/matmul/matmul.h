// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/core/base/int_math.h"
#include "kernels/core/dtype.h"
#include "kernels/core/encoder_config.h"
#include "kernels/core/shape.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::cpu {

// Blocks of rows are cut at multiples of this; oneDNN and AMX tiles compute so many at a time.
inline constexpr int64_t kRowGranularity = 16;
inline int64_t RoundUpRows(int64_t rows) { return RoundUp(rows, kRowGranularity); }

// One thread's means to run the matmuls of a Matmul. Thread-confined.
class MatmulExecutor {
 public:
  virtual ~MatmulExecutor() = default;

  // y [rows, n] = x [rows, k] w [+ bias [n]]; x and y have room for RoundUpRows(rows) rows, and
  // what is in those beyond `rows` means nothing. REQUIRES: rows at most max_rows; `bias` exactly
  // when the Matmul has one. False when the matmul failed.
  [[nodiscard]] virtual bool Run(int64_t rows, const void* x, const void* packed_weight,
                                 const float* bias, void* y) = 0;
};

// Matmuls y = x w [+ bias] for one (k, n): x [m, k], w [k, n] in a packed layout of its
// own, y [m, n], for every m up to max_rows. A row of y has the same bits for every m.
//   f32   x f32, w f32, y f32
//   bf16  x bf16, w bf16, y f32
//   int8  x u8, w s8, y s32, no bias
// Immutable and thread-safe.
class Matmul {
 public:
  struct Options {
    DType dtype = DType::kF32;
    int64_t k = 0;
    int64_t n = 0;
    int64_t max_rows = 0;
    bool bias = false;
    bool bf16_output = false;  // of a bf16 matmul, instead of f32
    // y = activation(x w + bias). Only where CanActivate says so.
    std::optional<Activation> activation{};
    int64_t y_columns = 0;  // values from one row of y to the next; 0: n

    int64_t y_value_bytes() const { return bf16_output ? 2 : 4; }
    int64_t y_row_bytes() const { return (y_columns == 0 ? n : y_columns) * y_value_bytes(); }
  };

  virtual ~Matmul() = default;

  const Options& options() const { return options_; }
  // The name of the code that computes it, e.g. "tiles:avx512_bf16" or oneDNN's
  // "brg_matmul:avx10_1_512_amx".
  virtual std::string implementation() const = 0;

  // Packs a weight [n, k] as PyTorch stores it: f32 values, rounded where the format is bf16, or,
  // for int8, s8 values. The result lies in `storage`, packed_bytes() bytes.
  virtual void Pack(TensorView<const float, 2> weight, void* storage) const = 0;
  virtual void Pack(TensorView<const int8_t, 2> weight, void* storage) const = 0;
  virtual int64_t packed_bytes() const = 0;

  // Into how many equal slices of columns, at most `limit`, a packed weight can be cut so that each
  // lies in one piece.
  virtual int64_t CountSlices(int64_t limit) const = 0;
  // The matmul of one such slice: slice i reads the packed weight from i * packed_bytes() of the
  // result on, and its n / slices columns of y keep the row stride of the whole. A value's bits are
  // those of the whole matmul. REQUIRES: CountSlices(slices) == slices.
  virtual absl::StatusOr<std::unique_ptr<Matmul>> CreateSlice(int64_t slices,
                                                              int64_t max_rows) const = 0;

  // `scratchpad`, scratchpad_bytes() bytes, and the Matmul must outlive it. Throws std::exception.
  virtual std::unique_ptr<MatmulExecutor> NewExecutor(void* scratchpad) const = 0;
  virtual size_t scratchpad_bytes() const = 0;

 protected:
  explicit Matmul(const Options& options) : options_(options) {}

  // Of CountSlices: the most equal slices, at most `limit`, that `pieces` can be cut into.
  static int64_t LargestDivisor(int64_t pieces, int64_t limit);
  // Of CreateSlice.
  Options SliceOptions(int64_t slices, int64_t max_rows) const;

 private:
  Options options_;
};

// The matmul that level.matmul chooses: register tiles (tile_matmul.h) or oneDNN (onednn_matmul.h).
// The other where that one has none: where k does not fill the tiles' groups, or where oneDNN has
// only slow kernels. INTERNAL when oneDNN fails; UNIMPLEMENTED when neither has a fast one.
// REQUIRES: CanActivate(level, options) if they have an activation.
absl::StatusOr<std::unique_ptr<Matmul>> CreateMatmul(const IsaLevel& level,
                                                     const Matmul::Options& options);

// Whether the matmul that level.matmul chooses also computes options.activation, in the same pass
// over y. REQUIRES: bias and bf16_output.
bool CanActivate(const IsaLevel& level, const Matmul::Options& options);

}  // namespace attendant::cpu
