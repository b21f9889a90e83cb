// SPDX-License-Identifier: Apache-2.0
// One head's attention over a whole sequence. Its bound counts both matmuls and nothing of the
// softmax between them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/attention/attention_args.h"
#include "tests/bench/kernels/bound.h"
#include "tests/bench/kernels/models.h"

namespace attendant::bench {
namespace {

// [len, 3 * hidden] standard normal numbers, as f32 or bf16.
std::vector<float> RandomQkv(int64_t len, int64_t hidden, bool bf16) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> qkv(static_cast<size_t>(len * 3 * hidden));
  for (float& value : qkv) value = normal(random);
  if (!bf16) return qkv;
  auto* high_halves = reinterpret_cast<char*>(qkv.data());
  for (size_t i = 0; i < qkv.size(); ++i) {
    std::memmove(high_halves + 2 * i, high_halves + 4 * i + 2, 2);
  }
  return qkv;
}

void MeasureAttention(benchmark::State& state, const ModelShape& model, DType dtype) {
  const cpu::RowKernels& rows = BestRowKernels(dtype);
  const int64_t len = state.range(0), head_dim = model.head_dim();
  const auto qkv = RandomQkv(len, model.hidden, rows.qkv_is_bf16);
  std::vector<float> out(static_cast<size_t>(len * model.hidden));
  std::vector<std::byte> scratch(
      static_cast<size_t>(BestKernels().attention_scratch_bytes(len, head_dim, head_dim)));
  const auto* q = reinterpret_cast<const std::byte*>(qkv.data());
  const int64_t part_bytes = model.hidden * (rows.qkv_is_bf16 ? 2 : 4);
  cpu::AttentionArgs args{.q = q,
                          .k = q + part_bytes,
                          .v = q + 2 * part_bytes,
                          .out = out.data(),
                          .out_is_bf16 = dtype == DType::kBf16,
                          .q_stride = 3 * model.hidden,
                          .k_stride = 3 * model.hidden,
                          .v_stride = 3 * model.hidden,
                          .out_stride = model.hidden,
                          .keys = len,
                          .head_dim = head_dim,
                          .value_dim = head_dim,
                          .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
                          .scratch = scratch.data()};
  const double flops = 4 * static_cast<double>(len * len * head_dim);
  Measure(state, MatmulBound(rows.qkv_is_bf16 ? DType::kBf16 : DType::kF32, flops), [&] {
    for (int64_t begin = 0; begin < len; begin += cpu::kMaxTaskQueries) {
      args.query_begin = begin;
      args.query_end = std::min(begin + cpu::kMaxTaskQueries, len);
      rows.attention(args);
    }
  });
}

}  // namespace

void RegisterAttention() {
  for (const ModelShape& model : {kMiniLm, kBertBase}) {
    for (DType dtype : FastDTypes()) {
      benchmark::RegisterBenchmark(
          BenchmarkName("attention", model, dtype).c_str(),
          [=](benchmark::State& state) { MeasureAttention(state, model, dtype); })
          ->ArgName("len")
          ->ArgsProduct({{16, 45, 48, 128, 512, 2048, 8192}});
    }
  }
}

}  // namespace attendant::bench
