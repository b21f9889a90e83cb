// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/kernels/bound.h"

#include <algorithm>
#include <map>
#include <vector>

#include "kernels/cpu/simd/isa_level.h"
#include "tests/bench/bench_matmul.h"
#include "tests/bench/timing.h"

namespace attendant::bench {
namespace {

constexpr double kSecondsPerBound = 0.05;

// The shortest of many calls: a bound is what the machine can do, not what it does on average.
double LeastSeconds(absl::FunctionRef<void()> work) {
  work();
  return SecondsOfCalls(kSecondsPerBound, work).front();
}

struct MatmulShape {
  int64_t rows, k, n;
};
// Around the shapes that are multiplied fastest: weights in the second level of cache and
// beyond.
constexpr MatmulShape kShapes[] = {{128, 384, 1152}, {256, 512, 512},  {256, 768, 768},
                                   {256, 1536, 384}, {128, 768, 3072}, {256, 1024, 1024},
                                   {256, 3072, 768}, {512, 768, 2304}};

double MeasurePeak(DType dtype) {
  double peak = 0;
  for (const MatmulShape& shape : kShapes) {
    for (const bool by_onednn : {false, true}) {
      const BenchMatmulWeights weights({.dtype = dtype,
                                        .k = shape.k,
                                        .n = shape.n,
                                        .max_rows = shape.rows,
                                        .by_onednn = by_onednn});
      BenchMatmul matmul(weights);
      peak =
          std::max(peak, matmul.Flops(shape.rows) / LeastSeconds([&] { matmul.Run(shape.rows); }));
    }
  }
  return peak;
}

}  // namespace

Bound MatmulBound(DType dtype, double flops) {
  static std::map<DType, double> peaks;
  const auto [peak, is_new] = peaks.try_emplace(dtype);
  if (is_new) peak->second = MeasurePeak(dtype);
  return {flops, peak->second, "GFLOP/s"};
}

Bound MemoryBound(double bytes, absl::FunctionRef<void()> pass) {
  return {bytes, bytes / LeastSeconds(pass), "GB/s"};
}

void Measure(benchmark::State& state, const Bound& bound, absl::FunctionRef<void()> iteration) {
  iteration();
  // By the wall clock, as the bound.
  double iterations = 0;
  const double begin = Now();
  for ([[maybe_unused]] auto each : state) {
    iteration();
    benchmark::ClobberMemory();
    ++iterations;
  }
  const double per_second = bound.amount * iterations / (Now() - begin);
  state.counters["rate"] = per_second / 1e9;
  state.counters["bound"] = bound.per_second / 1e9;
  state.counters["percent"] = 100 * per_second / bound.per_second;
  state.SetLabel(bound.unit);
}

const cpu::VectorKernels& BestKernels() {
  // Asked once: a virtual machine takes microseconds to say what its processor can do.
  static const cpu::VectorKernels& kernels = []() -> const cpu::VectorKernels& {
    const auto level = cpu::FindIsaLevel(cpu::CpuIsa::kAuto);
    if (!level.ok()) Die(level.status());
    return (*level)->kernels;
  }();
  return kernels;
}

const cpu::RowKernels& BestRowKernels(DType dtype) {
  const cpu::VectorKernels& kernels = BestKernels();
  return dtype == DType::kF32 ? kernels.f32 : dtype == DType::kBf16 ? kernels.bf16 : kernels.int8;
}

}  // namespace attendant::bench
