// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/base/mapped_file.h"

namespace attendant {

// A tensor as its file stores it: row-major, little-endian. `data` points into the mapped file, at
// any alignment, and holds exactly the product of `dims` elements of `dtype`.
struct StoredTensor {
  std::string name;
  std::string dtype;  // the format's own word: "F32", "BF16", "I64", ...
  std::vector<int64_t> dims;
  std::span<const std::byte> data;
};

// One mapped safetensors file:
//
//   header_bytes  uint64, little-endian, at most 100,000,000
//   header        JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//   data          the tensors, in the order of their offsets, no gap and no overlap
//
// Nothing in it is believed: Open refuses a file unless every tensor's dtype, shape, byte count and
// place agree with each other and with the file's size, so that reading any tensor stays inside the
// file. A page that can no longer be read is zeros: see MappedReads. Immutable, thread-safe.
class SafetensorsFile {
 public:
  // INVALID_ARGUMENT names the file, the tensor and the numbers; NOT_FOUND when there is no such
  // file.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  std::span<const StoredTensor> tensors() const { return tensors_; }  // sorted by name
  const StoredTensor* Find(absl::string_view name) const;             // nullptr: no such tensor

 private:
  SafetensorsFile(std::string path, MappedFile file, std::vector<StoredTensor> tensors)
      : path_(std::move(path)), file_(std::move(file)), tensors_(std::move(tensors)) {}

  std::string path_;
  MappedFile file_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace attendant
