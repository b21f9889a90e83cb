// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/attention.h"
#include "client/types.h"

namespace attendant::client {

// An array from a file, row-major.
struct Array {
  std::vector<int64_t> shape;
  std::vector<float> values;  // truth values are 0 and 1
  bool is_bool = false;
};

// What an array's values are in a file.
struct ValueFormat {
  enum class Kind { kBool, kFloat, kBf16, kSigned, kUnsigned };
  Kind kind = Kind::kFloat;
  int bytes = 4;  // of one value: 1, 2, 4 or 8
  bool big_endian = false;
};

// The number of values that `shape` has; FAILED_PRECONDITION for a negative dim or when it cannot
// be in memory.
absl::StatusOr<int64_t> CountValues(const std::vector<int64_t>& shape, const std::string& name);

// `bytes` as floats. FAILED_PRECONDITION naming `name` and the value for a truth value that is
// neither 0 nor 1, and for an integer that f32 does not hold. REQUIRES: bytes.size() is a multiple
// of format.bytes.
absl::StatusOr<std::vector<float>> DecodeValues(absl::string_view bytes, const ValueFormat& format,
                                                const std::string& name);

// A whole file; FAILED_PRECONDITION when it is none, cannot be read or has more than 2 GiB, which
// no request can carry.
absl::StatusOr<std::string> ReadArrayFile(const std::string& path);

// An array by what a flag says: "x.npy"; "x.safetensors:name", or "x.safetensors" for the tensor
// called `default_name`.
absl::StatusOr<Array> LoadArray(const std::string& argument, const std::string& default_name);

// FAILED_PRECONDITION, naming `name`, when the values are of the other kind.
absl::StatusOr<Tensor> ToTensor(Array array, const std::string& name);
absl::StatusOr<BoolTensor> ToBoolTensor(const Array& array, const std::string& name);

}  // namespace attendant::client
