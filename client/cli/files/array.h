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

// The format of the values in a file.
struct ValueFormat {
  enum class Kind { kBool, kFloat, kBf16, kSigned, kUnsigned };
  Kind kind = Kind::kFloat;
  int bytes = 4;  // of one value: 1, 2, 4 or 8
  bool big_endian = false;
};

// The number of values of a shape. FAILED_PRECONDITION for a negative dim, and for more values than
// fit into a file of 2 GiB.
absl::StatusOr<int64_t> CountValues(const std::vector<int64_t>& shape, const std::string& name);

// `bytes` as floats. FAILED_PRECONDITION, with `name` and the value, for a truth value other than 0
// and 1, and for an integer that f32 cannot hold. REQUIRES: bytes.size() is a multiple of
// format.bytes.
absl::StatusOr<std::vector<float>> DecodeValues(absl::string_view bytes, const ValueFormat& format,
                                                const std::string& name);

// A whole file. FAILED_PRECONDITION if it cannot be read, or has more than 2 GiB, which no request
// can carry.
absl::StatusOr<std::string> ReadArrayFile(const std::string& path);

// The array that a flag names: "x.npy"; "x.safetensors:name", or "x.safetensors" for the tensor
// called `default_name`. FAILED_PRECONDITION if it cannot be read.
absl::StatusOr<Array> LoadArray(const std::string& argument, const std::string& default_name);

// FAILED_PRECONDITION, with `name`, for numbers in place of truth values or the other way round.
absl::StatusOr<Tensor> ToTensor(Array array, const std::string& name);
absl::StatusOr<BoolTensor> ToBoolTensor(const Array& array, const std::string& name);

}  // namespace attendant::client
