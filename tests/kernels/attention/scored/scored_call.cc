// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/attention/scored/scored_call.h"

#include <cmath>
#include <utility>

#include "tests/support/counter_values.h"

namespace attendant::attention {

ScoredCall::ScoredCall(Kind kind, DType dtype, const Shape& shape, int64_t projected)
    : TestCall(kind, dtype, shape, 7) {
  SetParameters(projected);
}

ScoredCall::ScoredCall(Kind kind, DType dtype, const Shape& shape,
                       std::vector<int64_t> query_starts_in, std::vector<int64_t> key_starts_in,
                       int64_t projected)
    : TestCall(kind, dtype, shape, std::move(query_starts_in), std::move(key_starts_in), 7) {
  SetParameters(projected);
}

void ScoredCall::SetParameter(const char* name, int64_t rows, int64_t columns,
                              std::vector<float> values) {
  values_.push_back(std::move(values));
  std::erase_if(parameters_, [name](const Parameter& old) { return old.name == name; });
  parameters_.push_back({name, {values_.back().data(), {rows, columns}}});
  call.parameters = parameters_;
}

void ScoredCall::SetParameters(int64_t projected) {
  const int64_t query_dim = call.query.dim, key_dim = call.key.dim;
  uint64_t seed = 100;
  const auto random = [&](const char* name, int64_t rows, int64_t columns) {
    const float amplitude = 2 / std::sqrt(static_cast<float>(columns));
    SetParameter(name, rows, columns, CounterValues(++seed, rows * columns, amplitude));
  };
  switch (call.kind) {
    case Kind::kAdditive:
      random("query_weight", kUnits, query_dim);
      random("key_weight", kUnits, key_dim);
      random("score_weight", 1, kUnits);
      return random("bias", 1, kUnits);
    case Kind::kLuongGeneral:
      return random("weight", query_dim, key_dim);
    case Kind::kLuongConcat:
      random("weight", kUnits, query_dim + key_dim);
      return random("score_weight", 1, kUnits);
    case Kind::kLinformer:
      random("key_projection", projected, call.keys.max_len());
      return random("value_projection", projected, call.keys.max_len());
    default:
      return;
  }
}

}  // namespace attendant::attention
