// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace attendant {

// A regular file, open for reading. Thread-compatible.
class RegularFile {
 public:
  // NOT_FOUND when there is none, PERMISSION_DENIED when it may not be read, INVALID_ARGUMENT when
  // it is a folder, a pipe or a device. Never waits for a writer.
  static absl::StatusOr<RegularFile> Open(const std::string& path);

  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;
  ~RegularFile();

  int64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }

 private:
  RegularFile(int descriptor, int64_t bytes) : descriptor_(descriptor), bytes_(bytes) {}

  int descriptor_;
  int64_t bytes_;
};

// A file's bytes, mapped read-only; they stay when the file is renamed or removed. Thread-safe.
//
// A mapped file must not be shortened in place: reading the part that is gone ends the process with
// SIGBUS. Replace checkpoints by renaming.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }  // starts at a page

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

// A regular file's bytes, at most `max_bytes`: INVALID_ARGUMENT beyond; else RegularFile's errors.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, int64_t max_bytes);

}  // namespace attendant
