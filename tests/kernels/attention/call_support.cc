// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/attention/call_support.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "kernels/attention/values.h"
#include "kernels/core/arena.h"
#include "tests/support/counter_values.h"

namespace attendant::attention {
namespace {

constexpr float kUnwritten = std::numeric_limits<float>::quiet_NaN();

template <typename Execute>
absl::StatusOr<Answer> Answered(const Call& call, const Cost& cost, Execute execute) {
  std::vector<std::byte> out(static_cast<size_t>(cost.out_bytes), std::byte{0xff});
  Answer answer;
  answer.weights.assign(static_cast<size_t>(cost.weights_bytes) / sizeof(float), kUnwritten);
  const Outputs outputs{
      .out = call.queries.packed()
                 ? OutputRows::TokensFirst(out.data(), cost.out_heads, cost.out_dim)
                 : OutputRows::HeadsFirst(out.data(), cost.out_heads, cost.out_dim,
                                          call.queries.seq()),
      .attention_weights = answer.weights.empty() ? nullptr : answer.weights.data()};
  if (absl::Status status = execute(outputs); !status.ok()) return status;
  const int64_t count = cost.out_bytes / ValueBytes(call.dtype);
  for (int64_t i = 0; i < count; ++i) {
    answer.out.push_back(ReadValue(out.data(), call.dtype, i));
  }
  return answer;
}

std::vector<std::byte> Values(DType dtype, uint64_t seed, int64_t count, float amplitude) {
  return Encode(CounterValues(seed, count, amplitude), dtype);
}

}  // namespace

const cpu::IsaLevel* BestIsa() {
  static const absl::StatusOr<const cpu::IsaLevel*> isa = FindIsa("auto");
  return isa.ok() ? *isa : nullptr;
}

std::vector<std::byte> Encode(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(ValueBytes(dtype)));
  for (size_t i = 0; i < values.size(); ++i) {
    WriteValue(bytes.data(), dtype, static_cast<int64_t>(i), values[i]);
  }
  return bytes;
}

absl::StatusOr<Answer> RunCall(const Call& call, int threads) {
  ThreadPool pool(threads);
  absl::StatusOr<Cost> cost = Measure(call, threads);
  if (!cost.ok()) return cost.status();
  Arena arena(cost->scratch_bytes);
  const std::span<std::byte> scratch(arena.Allocate<std::byte>(cost->scratch_bytes),
                                     static_cast<size_t>(cost->scratch_bytes));
  std::fill(scratch.begin(), scratch.end(), std::byte{0xff});
  return Answered(call, *cost,
                  [&](const Outputs& outputs) { return Run(call, pool, scratch, outputs); });
}

absl::StatusOr<Answer> RunCallByReference(const Call& call) {
  absl::StatusOr<Cost> cost = Measure(call, 1);
  if (!cost.ok()) return cost.status();
  return Answered(call, *cost, [&](const Outputs& outputs) { return RunReference(call, outputs); });
}

TestCall::TestCall(Kind kind, DType dtype, const Shape& s, uint64_t seed)
    : query(Values(dtype, seed, s.batch * s.heads * s.queries * s.head_dim, s.amplitude)),
      key(Values(dtype, seed + 1, s.batch * s.heads * s.keys * s.head_dim, s.amplitude)),
      value(Values(dtype, seed + 2, s.batch * s.heads * s.keys * s.value_dim, 1)),
      call{.kind = kind,
           .dtype = dtype,
           .queries = Sequences::Dense(s.batch, s.queries),
           .keys = Sequences::Dense(s.batch, s.keys),
           .query = InputRows::HeadsFirst(query.data(), s.heads, s.head_dim, s.queries),
           .key = InputRows::HeadsFirst(key.data(), s.heads, s.head_dim, s.keys),
           .value = InputRows::HeadsFirst(value.data(), s.heads, s.value_dim, s.keys),
           .isa = BestIsa()} {}

TestCall::TestCall(Kind kind, DType dtype, const Shape& s, std::vector<int64_t> queries,
                   std::vector<int64_t> keys, uint64_t seed)
    : query_starts(std::move(queries)),
      key_starts(std::move(keys)),
      query(Values(dtype, seed, query_starts.back() * s.heads * s.head_dim, s.amplitude)),
      key(Values(dtype, seed + 1, key_starts.back() * s.heads * s.head_dim, s.amplitude)),
      value(Values(dtype, seed + 2, key_starts.back() * s.heads * s.value_dim, 1)),
      call{.kind = kind,
           .dtype = dtype,
           .queries = Sequences::Packed(query_starts),
           .keys = Sequences::Packed(key_starts),
           .query = InputRows::TokensFirst(query.data(), s.heads, s.head_dim),
           .key = InputRows::TokensFirst(key.data(), s.heads, s.head_dim),
           .value = InputRows::TokensFirst(value.data(), s.heads, s.value_dim),
           .isa = BestIsa()} {}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= std::numeric_limits<double>::max())) {
      return std::numeric_limits<double>::infinity();
    }
    largest = std::max(largest, difference);
  }
  return largest;
}

}  // namespace attendant::attention
