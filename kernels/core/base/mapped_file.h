// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace attendant {

// A file's bytes, mapped read-only; they stay when the file is renamed or removed. When a page can
// no longer be read, because the file became shorter or its disk fails, the system sends SIGBUS,
// which would end the process. A handler, which the first Open installs, lets the page read as
// zeros from then on and counts it: see MappedReads. Thread-safe.
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

// Watches the files that the process maps while this object lives. Thread-safe.
class MappedReads {
 public:
  MappedReads();
  MappedReads(const MappedReads&) = delete;
  MappedReads& operator=(const MappedReads&) = delete;
  ~MappedReads();

  // `read`, the result of what was read of them. In its place UNAVAILABLE if what was read may be
  // half old and half new, as a file was written in place since it was mapped, or if a page was
  // lost. A file that was replaced by renaming has not changed.
  absl::Status Check(const absl::Status& read) const;

 private:
  friend class MappedFile;
  // A file as it was when it was mapped.
  struct File {
    std::string path;
    struct stat found;
  };

  void Add(const File& file);

  const int64_t lost_before_;
  mutable std::mutex mutex_;
  std::vector<File> files_;  // guarded by mutex_
};

}  // namespace attendant
