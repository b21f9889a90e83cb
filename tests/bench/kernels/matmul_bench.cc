// SPDX-License-Identifier: Apache-2.0
// The matmuls of a layer: as large blocks of rows, and for a single short sequence.
#include <memory>

#include "kernels/cpu/encoder/cpu_encoder.h"
#include "tests/bench/bench_matmul.h"
#include "tests/bench/kernels/bound.h"
#include "tests/bench/kernels/models.h"

namespace attendant::bench {
namespace {

void MeasureMatmul(benchmark::State& state, DType dtype, int64_t k, int64_t n) {
  const int64_t rows = state.range(0);
  const BenchMatmulWeights weights(dtype, k, n, rows, false);
  BenchMatmul matmul(weights);
  Measure(state, MatmulBound(dtype, matmul.Flops(rows)), [&] { matmul.Run(rows); });
}

void RegisterMatmul(const std::string& name, const ModelShape& model, DType dtype, int64_t k,
                    int64_t n) {
  benchmark::RegisterBenchmark(BenchmarkName(absl::StrCat("matmul_", name), model, dtype).c_str(),
                               [=](benchmark::State& state) { MeasureMatmul(state, dtype, k, n); })
      ->ArgName("rows")
      ->Arg(16)
      ->Arg(cpu::kMaxBlockRows);
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
