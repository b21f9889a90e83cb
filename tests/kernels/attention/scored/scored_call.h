// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <vector>

#include "tests/kernels/attention/call_support.h"

namespace attendant::attention {

// The kinds whose scores are not those of scaled dot products.
inline constexpr Kind kScoredKinds[] = {Kind::kAdditive,    Kind::kLuongDot, Kind::kLuongGeneral,
                                        Kind::kLuongConcat, Kind::kLinear,   Kind::kLinformer};

inline constexpr int64_t kUnits = 37;  // of a tanh; no vector's length divides it

// A TestCall with the parameters of its kind: Linformer projects to `projected`.
struct ScoredCall : TestCall {
  ScoredCall(Kind kind, DType dtype, const Shape& shape, int64_t projected = 11);
  ScoredCall(Kind kind, DType dtype, const Shape& shape, std::vector<int64_t> query_starts,
             std::vector<int64_t> key_starts, int64_t projected = 11);

  // Adds or replaces one.
  void SetParameter(const char* name, int64_t rows, int64_t columns, std::vector<float> values);

 private:
  void SetParameters(int64_t projected);

  std::deque<std::vector<float>> values_;
  std::vector<Parameter> parameters_;
};

}  // namespace attendant::attention
