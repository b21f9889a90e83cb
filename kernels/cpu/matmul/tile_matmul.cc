// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul/tile_matmul.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/half.h"
#include "kernels/core/check.h"
#include "kernels/cpu/matmul/paired_panels.h"
#include "kernels/cpu/simd/activation_kernel.h"
#include "kernels/cpu/simd/by_dtype.h"

namespace attendant::cpu {
namespace {

const MatmulKernels& KernelsOf(const VectorKernels& kernels, DType dtype) {
  return ByDType(dtype, kernels.f32_matmul, kernels.bf16_matmul, kernels.int8_matmul);
}

MatmulKernels::Multiply MultiplyOf(const MatmulKernels& kernels, const Matmul::Options& options) {
  switch (options.output) {
    case MatmulOutput::kBf16:
      return kernels.multiply_to_bf16;
    case MatmulOutput::kAdded:
      return kernels.multiply_add;
    case MatmulOutput::kActivated:
      return ActivationKernel(kernels.activate, options.activation);
    case MatmulOutput::kGated:
      return ActivationKernel(kernels.activate_gated, options.activation);
    case MatmulOutput::kSums:
      break;
  }
  return kernels.multiply;
}

// Of s32, which no bias can be added to.
bool IsBiasedSum(const Matmul::Options& options) {
  return options.dtype == DType::kInt8 && options.output == MatmulOutput::kSums && options.bias;
}

// A panel's values along k.
int64_t PanelDepth(const MatmulKernels& kernels, int64_t k) {
  return RoundUp(k, kernels.group_values * kernels.step_groups);
}

// As MatmulArgs::weight has it, from [n, k], with values of type `To`.
template <typename To, typename From, typename Convert>
void PackPanels(const MatmulKernels& kernels, TensorView<const From, 2> weight, Convert convert,
                void* storage) {
  const int64_t n = weight.dim(0), k = weight.dim(1);
  const int64_t width = kernels.panel_columns, group_values = kernels.group_values;
  const int64_t panel_values = PanelDepth(kernels, k) * width;
  auto* panel = static_cast<To*>(storage);
  for (int64_t column = 0; column < n; column += width, panel += panel_values) {
    if (n - column < width || panel_values > k * width) std::fill_n(panel, panel_values, To{});
    for (int64_t j = 0; j < std::min(width, n - column); ++j) {
      const From* from = weight.row(column + j);
      To* to = panel + j * group_values;
      for (int64_t i = 0; i < k; i += group_values, to += width * group_values) {
        for (int64_t v = 0; v < std::min(group_values, k - i); ++v) to[v] = convert(from[i + v]);
      }
    }
  }
}

class TileExecutor final : public MatmulExecutor {
 public:
  TileExecutor(const MatmulKernels& kernels, const Matmul::Options& options)
      : multiply_(MultiplyOf(kernels, options)),
        common_args_{.x_bytes = options.k * 4 / kernels.group_values,
                     .groups = PanelDepth(kernels, options.k) / kernels.group_values,
                     .terms = {},
                     .y_bytes = options.y_row_bytes(),
                     .columns = options.n} {}

  bool Run(int64_t rows, const void* x, const void* packed_weight, const MatmulTerms& terms,
           void* y) override {
    if (rows == 0) return true;
    MatmulArgs args = common_args_;
    args.x = x;
    args.weight = packed_weight;
    args.terms = terms;
    args.y = y;
    args.rows = rows;
    multiply_(args);
    return true;
  }

 private:
  const MatmulKernels::Multiply multiply_;
  MatmulArgs common_args_;  // what is the same for all
};

}  // namespace

bool TileMatmul::Covers(const VectorKernels& kernels, const Options& options) {
  const MatmulKernels& tiles = KernelsOf(kernels, options.dtype);
  if (MultiplyOf(tiles, options) == nullptr || IsBiasedSum(options)) return false;
  if (options.output == MatmulOutput::kGated && options.n % tiles.panel_columns != 0) return false;
  // A group that a row does not fill reads on into the next: bytes, which zeros of the weight make
  // 0, but numbers that are not finite they do not.
  const bool fills_groups = options.k % tiles.group_values == 0 || tiles.step_groups > 1;
  return fills_groups || options.dtype == DType::kInt8;
}

TileMatmul::TileMatmul(const VectorKernels& kernels, const Options& options)
    : Matmul(options), all_kernels_(kernels), kernels_(KernelsOf(kernels, options.dtype)) {
  ATTENDANT_CHECK(Covers(kernels, options));
  ATTENDANT_CHECK(options.bias || options.output == MatmulOutput::kSums);
}

std::string TileMatmul::implementation() const { return absl::StrCat("tiles:", all_kernels_.isa); }

void TileMatmul::Pack(TensorView<const float, 2> weight, void* storage) const {
  ATTENDANT_CHECK(weight.dim(0) == options().n && weight.dim(1) == options().k);
  if (options().dtype == DType::kBf16) {
    PackPanels<uint16_t>(kernels_, weight, ToBf16, storage);
  } else {
    ATTENDANT_CHECK(options().dtype == DType::kF32);
    PackPanels<float>(
        kernels_, weight, [](float value) { return value; }, storage);
  }
}

void TileMatmul::Pack(TensorView<const int8_t, 2> weight, void* storage) const {
  ATTENDANT_CHECK(weight.dim(0) == options().n && weight.dim(1) == options().k);
  ATTENDANT_CHECK(options().dtype == DType::kInt8);
  if (kernels_.paired) return PackPairedPanels(weight, kernels_.panel_columns, storage);
  PackPanels<int8_t>(
      kernels_, weight, [](int8_t value) { return value; }, storage);
}

int64_t TileMatmul::packed_bytes() const {
  if (kernels_.paired) {
    const int64_t panels = CeilDivide(options().n, kernels_.panel_columns);
    return panels * PairedPanelBytes(options().k, kernels_.panel_columns);
  }
  const int64_t groups = PanelDepth(kernels_, options().k) / kernels_.group_values;
  return RoundUp(options().n, kernels_.panel_columns) * groups * 4;
}

int64_t TileMatmul::CountSlices(int64_t limit) const {
  if (options().n % kernels_.panel_columns != 0) return 1;
  const int64_t panels = options().n / kernels_.panel_columns;
  return LargestDivisor(panels, limit);
}

absl::StatusOr<std::unique_ptr<Matmul>> TileMatmul::CreateSlice(int64_t slices,
                                                                int64_t max_rows) const {
  return std::make_unique<TileMatmul>(all_kernels_, SliceOptions(slices, max_rows));
}

std::unique_ptr<MatmulExecutor> TileMatmul::NewExecutor(void*) const {
  return std::make_unique<TileExecutor>(kernels_, options());
}

}  // namespace attendant::cpu
