// SPDX-License-Identifier: Apache-2.0
// Each kernel of the CPU engine, on one thread, beside what bounds it: the matmul ceiling of its
// number format, or the bandwidth of the memory that it works in. tests/bench/README.md shows the
// command and explains the counters.
#include <benchmark/benchmark.h>

#include "kernels/cpu/simd/denormals.h"
#include "tests/bench/kernels/bound.h"

int main(int argc, char** argv) {
  const attendant::cpu::ScopedDenormalFlush flush;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("kernels", attendant::bench::BestKernels().isa);
  attendant::bench::RegisterMatmuls();
  attendant::bench::RegisterRows();
  attendant::bench::RegisterAttention();
  benchmark::RunSpecifiedBenchmarks();
}
