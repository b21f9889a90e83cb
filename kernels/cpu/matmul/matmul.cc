// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul/matmul.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/matmul/onednn_matmul.h"
#include "kernels/cpu/matmul/tile_matmul.h"

namespace attendant::cpu {

int64_t Matmul::LargestDivisor(int64_t pieces, int64_t limit) {
  int64_t slices = std::min(limit, pieces);
  while (pieces % slices != 0) --slices;
  return slices;
}

Matmul::Options Matmul::SliceOptions(int64_t slices, int64_t max_rows) const {
  Options slice = options_;
  slice.n = options_.n / slices;
  slice.y_columns = options_.y_width(options_.n);
  slice.max_rows = max_rows;
  return slice;
}

namespace {

// The inputs of which sums in 32 bits hold every product of u8 and s8, the latter above -128.
constexpr int64_t kMaxInt8Inputs = ((int64_t{1} << 31) - 1) / (255 * 127);

// Below VNNI oneDNN adds products of bytes in 16 bits, which saturate.
bool OneDnnSumsExactly(const IsaLevel& level, DType dtype) {
  return dtype != DType::kInt8 || !level.kernels.int8_matmul.paired;
}

// Not what oneDNN has on plain AVX2, "gemm:jit:f32": with some k a row's bits depend on the others.
bool IsBatchInvariant(const Matmul& onednn) {
  return absl::StartsWith(onednn.implementation(), "brg");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Matmul>> CreateMatmul(const IsaLevel& level,
                                                     const Matmul::Options& options) {
  if (options.dtype == DType::kInt8 && options.k > kMaxInt8Inputs) {
    return absl::UnimplementedError(
        absl::StrCat("a linear layer has ", options.k, " inputs, in int8 the limit is ",
                     kMaxInt8Inputs, ": sums of more could pass 32 bits; use f32 or bf16"));
  }
  if (!TileMatmul::Covers(level.kernels, options)) return OneDnnMatmul::Create(options);
  if (level.matmul == MatmulChoice::kOneDnn && OneDnnSumsExactly(level, options.dtype)) {
    absl::StatusOr<std::unique_ptr<Matmul>> matmul = OneDnnMatmul::Create(options);
    const bool refused = !matmul.ok() && !absl::IsUnimplemented(matmul.status());
    if (refused || (matmul.ok() && IsBatchInvariant(**matmul))) return matmul;
  }
  return std::make_unique<TileMatmul>(level.kernels, options);
}

bool HasOutput(const IsaLevel& level, const Matmul::Options& options) {
  return level.matmul != MatmulChoice::kOneDnn && TileMatmul::Covers(level.kernels, options);
}

}  // namespace attendant::cpu
