// SPDX-License-Identifier: Apache-2.0
// The products of a layer: as large blocks of rows, and for a single short sequence.
#include <memory>

#include "kernels/cpu/encoder/cpu_encoder.h"
#include "tests/bench/bench_matmul.h"
#include "tests/bench/kernels/bound.h"
#include "tests/bench/kernels/models.h"

namespace attendant::bench {
namespace {

void MeasureProduct(benchmark::State& state, DType dtype, int64_t k, int64_t n) {
  const int64_t rows = state.range(0);
  const ProductWeights weights(dtype, k, n, rows, false);
  Product product(weights);
  Measure(state, MatmulBound(dtype, product.Flops(rows)), [&] { product.Run(rows); });
}

void RegisterProduct(const std::string& product, const ModelShape& model, DType dtype, int64_t k,
                     int64_t n) {
  benchmark::RegisterBenchmark(
      BenchmarkName(absl::StrCat("product_", product), model, dtype).c_str(),
      [=](benchmark::State& state) { MeasureProduct(state, dtype, k, n); })
      ->ArgName("rows")
      ->Arg(16)
      ->Arg(cpu::kMaxBlockRows);
}

}  // namespace

void RegisterProducts() {
  for (const ModelShape& model : {kMiniLm, kBertBase}) {
    for (DType dtype : FastDTypes()) {
      RegisterProduct("qkv", model, dtype, model.hidden, 3 * model.hidden);
      RegisterProduct("attention_output", model, dtype, model.hidden, model.hidden);
      RegisterProduct("ffn_up", model, dtype, model.hidden, model.ffn);
      RegisterProduct("ffn_down", model, dtype, model.ffn, model.hidden);
    }
  }
}

}  // namespace attendant::bench
