// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace attendant::client {

// Writes a row-major matrix of floats in NumPy's .npy format, version 1.0:
//   "\x93NUMPY" 1 0, header size (uint16), header (a Python dict, padded so that the values start
//   at a multiple of 64), values (little-endian float32).
// REQUIRES: values.size() == rows * columns.
absl::Status WriteNpy(const std::string& path, int64_t rows, int64_t columns,
                      std::span<const float> values);

}  // namespace attendant::client
