// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/bench_matmul.h"

#include <utility>

#include "kernels/cpu/simd/isa_level.h"
#include "tests/bench/timing.h"

namespace attendant::bench {
namespace {

std::unique_ptr<cpu::Matmul> Create(const BenchMatmulWeights::Options& given) {
  const auto choice = given.by_onednn ? cpu::MatmulChoice::kOneDnn : cpu::MatmulChoice::kAuto;
  const auto level = cpu::FindIsaLevel(given.isa, choice);
  if (!level.ok()) Die(level.status());
  const cpu::Matmul::Options options{
      .dtype = given.dtype, .k = given.k, .n = given.n, .max_rows = given.max_rows};
  auto matmul = cpu::CreateMatmul(**level, options);
  if (!matmul.ok()) Die(matmul.status());
  return *std::move(matmul);
}

// Of both signs, as trained ones are: 8-bit weights of one sign find no neighbours in PairedPanels.
cpu::PackedLinear AlternatingWeights(const cpu::Matmul& matmul, Arena& arena) {
  const int64_t k = matmul.options().k, n = matmul.options().n;
  std::vector<float> weight;
  for (int64_t i = 0; i < k * n; ++i) weight.push_back(i % k % 2 == 0 ? 0.01f : -0.01f);
  const std::vector<float> bias(static_cast<size_t>(n));
  const LinearWeights linear{{weight.data(), {n, k}}, {bias.data(), {n}}};
  return cpu::PackLinear(matmul, {&linear}, arena);
}

size_t Elements(int64_t rows, int64_t columns) {
  return static_cast<size_t>(cpu::RoundUpRows(rows) * columns);
}

}  // namespace

BenchMatmulWeights::BenchMatmulWeights(const Options& options)
    : matmul_(Create(options)),
      arena_(matmul_->packed_bytes() + Arena::kAlignment),
      linear_(AlternatingWeights(*matmul_, arena_)) {}

BenchMatmul::BenchMatmul(const BenchMatmulWeights& weights)
    : weights_(weights),
      x_(Elements(weights.matmul().options().max_rows, weights.matmul().options().k), 0.5f),
      y_(Elements(weights.matmul().options().max_rows, weights.matmul().options().n)),
      scratchpad_(weights.matmul().scratchpad_bytes() + 64),
      runner_(weights.matmul().NewExecutor(scratchpad_.data())) {}

void BenchMatmul::Run(int64_t rows) {
  if (!runner_->Run(rows, x_.data(), weights_.packed(), {}, y_.data())) {
    Die(absl::InternalError("a matmul failed"));
  }
}

double BenchMatmul::Flops(int64_t rows) const {
  const cpu::Matmul::Options& options = weights_.matmul().options();
  return 2 * static_cast<double>(rows * options.k * options.n);
}

}  // namespace attendant::bench
