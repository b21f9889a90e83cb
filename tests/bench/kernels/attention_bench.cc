// SPDX-License-Identifier: Apache-2.0
// One head's attention over a whole sequence. Its bound counts both matmuls and nothing of the
// softmax between them. `error` is the root mean square of the difference to plain loops in double,
// relative to the root mean square of their answer, over some of the rows.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/simd/attention/attention_args.h"
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

float ReadValue(const void* values, int64_t index, bool bf16) {
  if (!bf16) return static_cast<const float*>(values)[index];
  return std::bit_cast<float>(uint32_t{static_cast<const uint16_t*>(values)[index]} << 16);
}

// REQUIRES: no bias and no mask.
double RelativeError(const cpu::AttentionArgs& args, bool bf16) {
  constexpr int64_t kRows = 8;
  double difference = 0, norm = 0;
  const auto at = [&](const void* rows, int64_t row, int64_t stride, int64_t column) {
    return static_cast<double>(ReadValue(rows, row * stride + column, bf16));
  };
  for (int64_t i = 0; i < kRows; ++i) {
    const int64_t query = i * (args.keys - 1) / kRows;
    std::vector<double> out(static_cast<size_t>(args.value_dim));
    double sum = 0;
    for (int64_t key = 0; key < args.keys; ++key) {
      double score = 0;
      for (int64_t d = 0; d < args.head_dim; ++d) {
        score += at(args.q, query, args.q_stride, d) * at(args.k, key, args.k_stride, d);
      }
      const double weight = std::exp(score * static_cast<double>(args.scale));
      sum += weight;
      for (int64_t d = 0; d < args.value_dim; ++d) {
        out[static_cast<size_t>(d)] += weight * at(args.v, key, args.v_stride, d);
      }
    }
    for (int64_t d = 0; d < args.value_dim; ++d) {
      const double expected = out[static_cast<size_t>(d)] / sum;
      const float actual = ReadValue(args.out, query * args.out_stride + d, args.out_is_bf16);
      difference += std::pow(static_cast<double>(actual) - expected, 2);
      norm += expected * expected;
    }
  }
  return std::sqrt(difference / norm);
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
  state.counters["error"] = RelativeError(args, rows.qkv_is_bf16);
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
