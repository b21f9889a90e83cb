// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "kernels/heads/head_layers.h"

namespace attendant {

// The modules of sentence-transformers behind the pooling, in their order. Each turns one vector of
// a sequence into another. Computed in f32. Immutable after loading, thread-safe.
struct SentenceHead {
  // activation(linear(x)), plus x, or residual(x), with a residual connection
  struct Dense {
    HeadLinear linear{};
    HeadActivation activation = HeadActivation::kTanh;
    bool use_residual = false;
    HeadLinear residual{};  // outputs == 0: x itself, linear.inputs == linear.outputs
  };
  struct Normalize {};  // to length 1
  struct Truncate {     // to the first values, where there are more
    int64_t outputs = 0;
  };

  using Module = std::variant<Dense, HeadNorm, Normalize, Truncate>;

  std::vector<Module> modules{};  // each takes the output of the one before it

  bool empty() const { return modules.empty(); }
  // The width of the modules' output for vectors of `width` values.
  int64_t OutputWidth(int64_t width) const;
  // The values that the first Dense or HeadNorm takes; 0: any number.
  int64_t InputWidth() const;
  // Applies the modules: `pooled` [rows, width] -> [rows, OutputWidth(width)]. A row has the same
  // bits as alone. REQUIRES: width is InputWidth(), or that is 0; rows > 0.
  std::vector<float> Compute(std::vector<float> pooled, size_t rows = 1) const;
};

}  // namespace attendant
