// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/modules/module_linear.h"

#include <algorithm>
#include <utility>

namespace attendant::attention {

absl::StatusOr<std::shared_ptr<const cpu::Matmul>> MatmulCache::Get(const Shape& shape) {
  if (auto known = matmuls_.find(shape); known != matmuls_.end()) return known->second;
  absl::StatusOr<std::unique_ptr<cpu::Matmul>> matmul =
      cpu::CreateMatmul(kernels_, {.dtype = dtype_,
                                   .k = shape.inputs,
                                   .n = shape.outputs,
                                   .max_rows = kBlockRows,
                                   .bias = shape.bias,
                                   .bf16_output = shape.dtype_outputs && dtype_ == DType::kBf16});
  if (!matmul.ok()) return matmul.status();
  scratchpad_bytes_ =
      std::max(scratchpad_bytes_, static_cast<int64_t>((*matmul)->scratchpad_bytes()));
  return matmuls_[shape] = *std::move(matmul);
}

absl::StatusOr<Projection> Projection::Create(MatmulCache& cache, const LinearWeights& weights,
                                              const Options& options) {
  auto matmul = cache.Get({.inputs = weights.weight.dim(1),
                           .outputs = weights.weight.dim(0),
                           .bias = options.add_bias,
                           .dtype_outputs = options.dtype_outputs});
  if (!matmul.ok()) return matmul.status();
  Projection projection;
  projection.matmul_ = *std::move(matmul);
  projection.arena_ =
      std::make_unique<Arena>(static_cast<size_t>(projection.matmul_->packed_bytes()));
  projection.packed_ = cpu::PackLinear(projection.matmul(), {&weights}, *projection.arena_);
  projection.packed_.bias.resize(static_cast<size_t>(weights.weight.dim(0)));
  return projection;
}

void ProjectionRunner::Run(const Projection& projection, int64_t rows, const void* x, void* y) {
  const cpu::Matmul* matmul = &projection.matmul();
  cpu::MatmulRunner* runner = nullptr;
  for (const auto& [known, its_runner] : runners_) {
    if (known == matmul) runner = its_runner.get();
  }
  if (runner == nullptr) {
    runner = runners_.emplace_back(matmul, matmul->NewRunner(scratchpad_)).second.get();
  }
  const float* bias = projection.adds_bias() ? projection.bias() : nullptr;
  if (!runner->Run(rows, x, projection.weight(), bias, y)) failed_ = true;
}

}  // namespace attendant::attention
