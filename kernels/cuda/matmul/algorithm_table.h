// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include <array>
#include <map>
#include <mutex>
#include <optional>

#include "kernels/cuda/matmul/matmul.h"

namespace attendant::cuda {

// The algorithms that sessions of one model have found, so that each is looked for once: for every
// kind of matmul a base, whose bits all others of that kind share, and the fastest of each class
// of rows (batch_layout.h). Thread-safe.
class AlgorithmTable {
 public:
  // Held by who looks for algorithms: two that timed at once would disturb each other.
  std::mutex& tuning() { return tuning_; }

  std::optional<cublasLtMatmulAlgo_t> base(MatmulKind kind) const;
  std::optional<cublasLtMatmulAlgo_t> fastest(MatmulKind kind, int row_class) const;
  // The first that is set stays.
  void set_base(MatmulKind kind, const cublasLtMatmulAlgo_t& algorithm);
  void set_fastest(MatmulKind kind, int row_class, const cublasLtMatmulAlgo_t& algorithm);

 private:
  std::mutex tuning_;
  mutable std::mutex mutex_;
  std::array<std::optional<cublasLtMatmulAlgo_t>, kNumMatmulKinds> base_;     // guarded by mutex_
  std::array<std::map<int, cublasLtMatmulAlgo_t>, kNumMatmulKinds> fastest_;  // guarded by mutex_
};

}  // namespace attendant::cuda
