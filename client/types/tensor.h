// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace attendant::client {

// Number format on the wire. The client converts from and to float; halves round to nearest even.
enum class DType { kF32, kBf16, kF16 };

// A dense tensor of floats in memory, whatever its format on the wire.
struct Tensor {
  std::vector<int64_t> shape = {};
  std::vector<float> values = {};  // row-major; as many as the product of `shape`
};

}  // namespace attendant::client
