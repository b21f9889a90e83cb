// SPDX-License-Identifier: Apache-2.0
// The matmuls of a layer, of the engine and of oneDNN: as large blocks of rows, and for short
// sequences. --benchmark_enable_random_interleaving with repetitions compares the two fairly on a
// machine that is not idle.
#include <memory>

#include "kernels/cpu/encoder/cpu_encoder.h"
#include "tests/bench/bench_matmul.h"
#include "tests/bench/kernels/bound.h"
#include "tests/bench/kernels/models.h"

namespace attendant::bench {
namespace {

void MeasureMatmul(benchmark::State& state, DType dtype, int64_t k, int64_t n, bool by_onednn) {
  const int64_t rows = state.range(0);
  const BenchMatmulWeights weights(
      {.dtype = dtype, .k = k, .n = n, .max_rows = rows, .by_onednn = by_onednn});
  BenchMatmul matmul(weights);
  Measure(state, MatmulBound(dtype, matmul.Flops(rows)), [&] { matmul.Run(rows); });
}

void RegisterMatmul(const std::string& name, const ModelShape& model, DType dtype, int64_t k,
                    int64_t n) {
  for (const bool by_onednn : {false, true}) {
    const std::string matmul = absl::StrCat(by_onednn ? "onednn_matmul_" : "matmul_", name);
    benchmark::RegisterBenchmark(
        BenchmarkName(matmul, model, dtype).c_str(),
        [=](benchmark::State& state) { MeasureMatmul(state, dtype, k, n, by_onednn); })
        ->ArgName("rows")
        ->Arg(16)
        ->Arg(32)
        ->Arg(64)
        ->Arg(cpu::kMaxBlockRows);
  }
}

}  // namespace

void RegisterMatmuls() {
  for (const ModelShape& model : {kMiniLm, kBertBase}) {
    for (DType dtype : FastDTypes()) {
      RegisterMatmul("qkv", model, dtype, model.hidden, 3 * model.hidden);
      RegisterMatmul("attention_output", model, dtype, model.hidden, model.hidden);
      RegisterMatmul("ffn_up", model, dtype, model.hidden, model.ffn);
      RegisterMatmul("ffn_down", model, dtype, model.ffn, model.hidden);
    }
  }
}

}  // namespace attendant::bench
