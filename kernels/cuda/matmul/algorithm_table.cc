// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/matmul/algorithm_table.h"

namespace attendant::cuda {

std::optional<cublasLtMatmulAlgo_t> AlgorithmTable::base(MatmulKind kind) const {
  const std::lock_guard lock(mutex_);
  return base_[static_cast<size_t>(kind)];
}

std::optional<cublasLtMatmulAlgo_t> AlgorithmTable::fastest(MatmulKind kind, int row_class) const {
  const std::lock_guard lock(mutex_);
  const auto& found = fastest_[static_cast<size_t>(kind)];
  const auto at = found.find(row_class);
  return at == found.end() ? std::nullopt : std::optional(at->second);
}

void AlgorithmTable::set_base(MatmulKind kind, const cublasLtMatmulAlgo_t& algorithm) {
  const std::lock_guard lock(mutex_);
  auto& base = base_[static_cast<size_t>(kind)];
  if (!base.has_value()) base = algorithm;
}

void AlgorithmTable::set_fastest(MatmulKind kind, int row_class,
                                 const cublasLtMatmulAlgo_t& algorithm) {
  const std::lock_guard lock(mutex_);
  fastest_[static_cast<size_t>(kind)].emplace(row_class, algorithm);
}

}  // namespace attendant::cuda
