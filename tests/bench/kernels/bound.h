// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include "absl/functional/function_ref.h"
#include "kernels/core/dtype.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::bench {

// The limit of a kernel, measured on this machine in this run.
struct Bound {
  double amount = 0;      // work of one iteration: FLOP or bytes
  double per_second = 0;  // the most that one thread does of it
  const char* unit = "";  // of 1e9 amounts in a second
};

// `flops` at the rate of the fastest matmul of this number format, over several shapes.
Bound MatmulBound(DType dtype, double flops);

// `bytes` at the speed of `pass`, which touches the same memory and computes nothing: the bandwidth
// of wherever that memory lies, be it a level of cache.
Bound MemoryBound(double bytes, absl::FunctionRef<void()> pass);

// Runs the benchmark's iterations and reports the counters `rate` and `bound`, in 1e9 units a
// second, and `percent`, the first in the second.
void Measure(benchmark::State& state, const Bound& bound, absl::FunctionRef<void()> iteration);

// The best kernels that this machine can run.
const cpu::VectorKernels& BestKernels();
const cpu::RowKernels& BestRowKernels(DType dtype);

// Each file of benchmarks adds its own to Google Benchmark's list.
void RegisterMatmuls();
void RegisterRows();
void RegisterAttention();

}  // namespace attendant::bench
