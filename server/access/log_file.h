// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// A file that grows at its end and may be renamed or removed by others, as logrotate does: Renew
// makes it anew. Thread-compatible.
class LogFile {
 public:
  // "-" is standard error. PERMISSION_DENIED, NOT_FOUND (its folder) or UNAVAILABLE name the file.
  static absl::StatusOr<LogFile> Open(std::string path);

  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&&) = delete;
  ~LogFile();

  // Appends a line, in one write. False when it could not be: the disk is full, or a pipe's reader
  // is stuck and `give_up` became true. REQUIRES: `line` ends with a line end and has at most 4096
  // bytes: a pipe takes so many at once.
  bool Append(absl::string_view line, const std::atomic<bool>& give_up);

  // Opens the path again if it no longer leads to this file. Without success the file stays.
  void Renew();

 private:
  LogFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
  bool torn_ = false;  // a line was written in part
};

}  // namespace attendant
