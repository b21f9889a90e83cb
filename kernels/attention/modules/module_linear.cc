// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/modules/module_linear.h"

#include "kernels/core/status_macros.h"

#include <algorithm>
#include <utility>

namespace attendant::attention {

absl::StatusOr<std::shared_ptr<const cpu::Matmul>> MatmulCache::Get(const Shape& shape) {
  if (auto known = matmuls_.find(shape); known != matmuls_.end()) return known->second;
  ATTENDANT_ASSIGN_OR_RETURN(
      std::unique_ptr<cpu::Matmul> matmul,
      cpu::CreateMatmul(kernels_, {.dtype = dtype_,
                                   .k = shape.inputs,
                                   .n = shape.outputs,
                                   .max_rows = kBlockRows,
                                   .bias = shape.bias,
                                   .bf16_output = shape.dtype_outputs && dtype_ == DType::kBf16}));
  scratchpad_bytes_ = std::max(scratchpad_bytes_, static_cast<int64_t>(matmul->scratchpad_bytes()));
  return matmuls_[shape] = std::move(matmul);
}

absl::StatusOr<ModuleLinear> ModuleLinear::Create(MatmulCache& cache, const LinearWeights& weights,
                                                  const Options& options) {
  ModuleLinear linear;
  ATTENDANT_ASSIGN_OR_RETURN(linear.matmul_, cache.Get({.inputs = weights.weight.dim(1),
                                                        .outputs = weights.weight.dim(0),
                                                        .bias = options.add_bias,
                                                        .dtype_outputs = options.dtype_outputs}));
  linear.arena_ = std::make_unique<Arena>(static_cast<size_t>(linear.matmul_->packed_bytes()));
  linear.packed_ = cpu::PackLinear(linear.matmul(), {&weights}, *linear.arena_);
  linear.packed_.bias.resize(static_cast<size_t>(weights.weight.dim(0)));
  return linear;
}

void ModuleLinearExecutor::Run(const ModuleLinear& linear, int64_t rows, const void* x, void* y) {
  const cpu::Matmul* matmul = &linear.matmul();
  cpu::MatmulExecutor* executor = nullptr;
  for (const auto& [known, its_executor] : executors_) {
    if (known == matmul) executor = its_executor.get();
  }
  if (executor == nullptr) {
    executor = executors_.emplace_back(matmul, matmul->NewExecutor(scratchpad_)).second.get();
  }
  const float* bias = linear.adds_bias() ? linear.bias() : nullptr;
  if (!executor->Run(rows, x, linear.weight(), bias, y)) failed_ = true;
}

}  // namespace attendant::attention
