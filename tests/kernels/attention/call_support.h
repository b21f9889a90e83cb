// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/attention/attention.h"

namespace attendant::attention {

// The best instruction set of this machine, for Call::isa and MakeModule.
const cpu::IsaLevel* BestIsa();

// An operand's values in the format of a call.
std::vector<std::byte> Encode(const std::vector<float>& values, DType dtype);

// The answer of a call: [batch, heads, queries, dim] of dense sequences, [tokens, heads, dim] of
// packed ones, and the weights as Outputs lays them out. Memory that a call must write begins as
// NaN.
struct Answer {
  std::vector<float> out;
  std::vector<float> weights;
};
absl::StatusOr<Answer> RunCall(const Call& call, int threads = 2);
absl::StatusOr<Answer> RunCallByReference(const Call& call);

// A self- or cross-attention with values of its own. Copies share nothing.
struct TestCall {
  struct Shape {
    int64_t batch = 2, heads = 3, queries = 19, keys = 27, head_dim = 16, value_dim = 16;
    float amplitude = 1;  // of queries and keys
  };
  // Dense, [batch, heads, len, dim] each.
  TestCall(Kind kind, DType dtype, const Shape& shape, uint64_t seed);
  // Packed, [tokens, heads, dim] each.
  TestCall(Kind kind, DType dtype, const Shape& shape, std::vector<int64_t> query_starts,
           std::vector<int64_t> key_starts, uint64_t seed);
  TestCall(const TestCall&) = delete;
  TestCall& operator=(const TestCall&) = delete;

  std::vector<int64_t> query_starts, key_starts;
  std::vector<std::byte> query, key, value;
  Call call;
};

// The largest absolute difference; NaN counts as infinite.
double LargestDifference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace attendant::attention
