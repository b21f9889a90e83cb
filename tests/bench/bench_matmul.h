// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/arena.h"
#include "kernels/cpu/matmul/matmul.h"
#include "kernels/cpu/matmul/packed_linear.h"
#include "kernels/cpu/simd/cpu_isa.h"

namespace attendant::bench {

// Weights [k, n] packed for matmuls in one number format, without bias. Immutable.
class BenchMatmulWeights {
 public:
  struct Options {
    DType dtype = DType::kF32;
    int64_t k = 0, n = 0;
    int64_t max_rows = 0;
    bool by_onednn = false;                // where it has a fast one, else by what the engine takes
    cpu::CpuIsa isa = cpu::CpuIsa::kAuto;  // of the engine; LimitOneDnn sets that of oneDNN
  };
  // Ends the program where there is no fast kernel.
  explicit BenchMatmulWeights(const Options& options);

  const cpu::Matmul& matmul() const { return *matmul_; }
  const std::byte* packed() const { return linear_.weight; }

 private:
  std::unique_ptr<cpu::Matmul> matmul_;
  Arena arena_;
  cpu::PackedLinear linear_;
};

// A matmul by one thread. Thread-confined; made on the thread that runs it. `weights`
// must outlive it.
class BenchMatmul {
 public:
  explicit BenchMatmul(const BenchMatmulWeights& weights);

  // y [rows, n] = x [rows, k] w [k, n]. REQUIRES: rows at most max_rows.
  void Run(int64_t rows);
  double Flops(int64_t rows) const;

 private:
  const BenchMatmulWeights& weights_;
  std::vector<float> x_, y_;
  std::vector<char> scratchpad_;
  std::unique_ptr<cpu::MatmulExecutor> runner_;
};

}  // namespace attendant::bench
