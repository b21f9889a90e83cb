// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace attendant {

// A file's bytes, mapped read-only; they stay when the file is renamed or removed. When a page can
// no longer be read, because the file became shorter or its disk fails, the system sends SIGBUS,
// which would end the process. A handler, which the first Open installs, lets the page read as
// zeros from then on and counts it: see LostPages. Thread-safe.
class MappedFile {
 public:
  // RegularFile's errors; RESOURCE_EXHAUSTED when 4,096 files are mapped.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }  // starts at a page

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

// The pages of mapped files that the process has lost since this object was made. Thread-safe.
class LostPages {
 public:
  LostPages();

  // `read`, the result of reading files; UNAVAILABLE in its place if pages were lost meanwhile.
  absl::Status Check(const absl::Status& read) const;

 private:
  int64_t before_;
};

}  // namespace attendant
