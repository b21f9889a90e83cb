// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// The error of a system call that failed with the number `error` of errno: "cannot `action` `path`:
// ...". What is no fault of the file, and may be over soon, is UNAVAILABLE: a disk that does not
// answer, no descriptor left. NOT_FOUND means that there is none, for sure.
absl::Status FileError(int error, absl::string_view action, absl::string_view path);

// A regular file, open for reading. Thread-compatible.
class RegularFile {
 public:
  // NOT_FOUND when there is none, PERMISSION_DENIED when it may not be read, INVALID_ARGUMENT when
  // it is a folder, a pipe or a device, UNAVAILABLE when the system fails and may not fail later.
  // Never waits for a writer.
  static absl::StatusOr<RegularFile> Open(const std::string& path);

  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;
  ~RegularFile();

  const struct stat& status() const { return status_; }  // when it was opened
  int64_t bytes() const { return status_.st_size; }
  int descriptor() const { return descriptor_; }

 private:
  explicit RegularFile(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
  struct stat status_ = {};
};

// Whether there is a regular file, behind links. Else RegularFile's errors: a file that the system
// does not tell of is not taken for absent.
absl::StatusOr<bool> IsFile(const std::string& path);

// A regular file's bytes, at most `max_bytes`: INVALID_ARGUMENT beyond; else RegularFile's errors.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, int64_t max_bytes);

}  // namespace attendant
