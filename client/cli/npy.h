// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace attendant::client {

// Writes a row-major array of floats in NumPy's .npy format, version 1.0:
//   "\x93NUMPY" 1 0, header size (uint16), header (a Python dict, padded so that the values start
//   at a multiple of 64), values (little-endian float32).
// REQUIRES: values.size() is the product of `shape`, which has at least two dimensions.
absl::Status WriteNpy(const std::string& path, const std::vector<int64_t>& shape,
                      std::span<const float> values);

}  // namespace attendant::client
