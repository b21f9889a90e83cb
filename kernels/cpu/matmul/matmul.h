// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

// Bytes behind 8-bit rows that a matmul may read: what fills up the last group of 4.
inline constexpr int64_t kSpareBytes = 3;

// The state of one thread that runs a Matmul. Thread-confined.
class MatmulExecutor {
 public:
  virtual ~MatmulExecutor() = default;

  // y = x [rows, k] w, as the Matmul's output has it. x and y have room for RoundUpRows(rows) rows,
  // x in int8 for kSpareBytes more, and what is in those beyond `rows` means nothing. Of
  // MatmulOutput::kAdded y needs no such room: rows beyond are neither read nor written. REQUIRES:
  // rows at most max_rows; terms.bias exactly when the Matmul has one, and the other terms when it
  // also computes in int8. False when the matmul failed.
  [[nodiscard]] virtual bool Run(int64_t rows, const void* x, const void* packed_weight,
                                 const MatmulTerms& terms, void* y) = 0;
};

// The values that a matmul writes. All but the sums require a bias, and are real numbers in int8
// too.
enum class MatmulOutput : uint8_t {
  kSums,       // f32, perhaps with a bias; in int8 s32, without
  kBf16,       // bf16
  kAdded,      // f32, added to y
  kActivated,  // activation(x w + bias), in bf16 of a bf16 matmul, else in f32
  kGated,      // activation(gate) * up, likewise, [m, n / 2]: w has the columns of both by turns
};

// Matmuls y = x w [+ bias] for one (k, n): x [m, k], w [k, n] in a packed layout of its
// own, y [m, n], or of kGated [m, n / 2], for every m up to max_rows. A row of y has the same bits
// for every m.
//   f32   x f32, w f32, y f32
//   bf16  x bf16, w bf16, y f32 or bf16
//   int8  x u8, w s8, y s32, f32 or bf16
// Immutable and thread-safe.
class Matmul {
 public:
  struct Options {
    DType dtype = DType::kF32;
    int64_t k = 0;
    int64_t n = 0;
    int64_t max_rows = 0;
    bool bias = false;
    MatmulOutput output = MatmulOutput::kSums;
    Activation activation = Activation::kGeluErf;  // of kActivated and kGated
    int64_t y_columns = 0;  // values from one row of y to the next; 0: as many as it has

    bool activates() const {
      return output == MatmulOutput::kActivated || output == MatmulOutput::kGated;
    }
    // Columns of y that `columns` of w become.
    int64_t y_width(int64_t columns) const {
      return output == MatmulOutput::kGated ? columns / 2 : columns;
    }
    int64_t y_value_bytes() const {
      return output == MatmulOutput::kBf16 || (activates() && dtype == DType::kBf16) ? 2 : 4;
    }
    int64_t y_row_bytes() const {
      return (y_columns == 0 ? y_width(n) : y_columns) * y_value_bytes();
    }
  };

  virtual ~Matmul() = default;

  const Options& options() const { return options_; }
  // The name of the code that computes it, e.g. "tiles:avx512_bf16" or oneDNN's
  // "brg_matmul:avx10_1_512_amx".
  virtual std::string implementation() const = 0;

  // The interleaving of MatmulOutput::kGated: this many columns of the gate, then as many of up,
  // and so on. n / 2 is a multiple of it.
  virtual int64_t gate_columns() const = 0;

  // Packs a weight [n, k] as PyTorch stores it: f32 values, rounded where the format is bf16, or,
  // for int8, s8 values. The result lies in `storage`, packed_bytes() bytes aligned to 8.
  virtual void Pack(TensorView<const float, 2> weight, void* storage) const = 0;
  virtual void Pack(TensorView<const int8_t, 2> weight, void* storage) const = 0;
  virtual int64_t packed_bytes() const = 0;

  // Into how many equal slices of columns, at most `limit`, a packed weight can be cut so that each
  // lies in one piece.
  virtual int64_t CountSlices(int64_t limit) const = 0;
  // The matmul of one such slice: slice i reads the packed weight from i * packed_bytes() of the
  // result on, and its columns of y, y_width(n / slices), keep the row stride of the whole. A
  // value's bits are those of the whole matmul. REQUIRES: CountSlices(slices) == slices.
  virtual absl::StatusOr<std::unique_ptr<Matmul>> CreateSlice(int64_t slices,
                                                              int64_t max_rows) const = 0;

  // `scratchpad`, scratchpad_bytes() bytes, and the Matmul must outlive it. Throws std::exception.
  virtual std::unique_ptr<MatmulExecutor> NewExecutor(void* scratchpad) const = 0;
  virtual size_t scratchpad_bytes() const = 0;

 protected:
  explicit Matmul(const Options& options) : options_(options) {}

  // For CountSlices: the largest number of equal slices, at most `limit`, that `pieces` can be cut
  // into.
  static int64_t LargestDivisor(int64_t pieces, int64_t limit);
  // The options of a slice, for CreateSlice.
  Options SliceOptions(int64_t slices, int64_t max_rows) const;

 private:
  Options options_;
};

// The matmul that level.matmul chooses: register tiles (tile_matmul.h) or oneDNN (onednn_matmul.h).
// The other where that one has none: where k does not fill the tiles' groups, or where oneDNN has
// only slow kernels, or inexact ones, of int8 below VNNI. INTERNAL when oneDNN fails; UNIMPLEMENTED
// when neither has a fast one, and in int8 for k above 66,311, whose sums could pass 32 bits.
// REQUIRES: the output is kSums, in int8 without a bias, or kBf16 in bf16, or HasOutput(level,
// options).
absl::StatusOr<std::unique_ptr<Matmul>> CreateMatmul(const IsaLevel& level,
                                                     const Matmul::Options& options);

// True if the matmul that level.matmul chooses fuses options.output: it writes the output in one
// pass over y. REQUIRES: a bias, unless the output is kSums.
bool HasOutput(const IsaLevel& level, const Matmul::Options& options);

}  // namespace attendant::cpu
