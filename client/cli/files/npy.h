// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/files/array.h"

namespace attendant::client {

// Writes a row-major array of floats in NumPy's .npy format, version 1.0:
//   "\x93NUMPY" 1 0, header size (uint16), header (a Python dict, padded so that the values start
//   at a multiple of 64), values (little-endian float32).
// Errors are those of WriteFile. REQUIRES: values.size() is the product of `shape`.
absl::Status WriteNpy(const std::string& path, const std::vector<int64_t>& shape,
                      std::span<const float> values);

// Reads any version of the format: booleans, floats of 2, 4 or 8 bytes (8 are rounded to f32), and
// integers that f32 holds exactly, in either byte order, in C or Fortran order.
// FAILED_PRECONDITION, with the file and the reason, for everything else: objects, a header other
// than a plain dict of the three fields, sizes that disagree.
absl::StatusOr<Array> ReadNpy(const std::string& path);
// Reads the bytes of such a file; errors call it `name`.
absl::StatusOr<Array> ParseNpy(absl::string_view bytes, const std::string& name);

}  // namespace attendant::client
