// SPDX-License-Identifier: Apache-2.0
#include "server/access/log_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

constexpr absl::string_view kStandardError = "-";

// Does not wait for a reader where the path is a pipe's.
absl::StatusOr<int> OpenForAppend(const std::string& path) {
  constexpr mode_t kMode = 0640;
  const int descriptor =
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, kMode);
  if (descriptor >= 0) return descriptor;
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
}

bool Writable(int descriptor, const std::atomic<bool>& give_up) {
  constexpr int kCheckMs = 100;
  pollfd polled = {descriptor, POLLOUT, 0};
  while (!give_up) {
    const int ready = poll(&polled, 1, kCheckMs);
    if (ready > 0) return (polled.revents & POLLOUT) != 0;
    if (ready < 0 && errno != EINTR) return false;
  }
  return poll(&polled, 1, 0) > 0 && (polled.revents & POLLOUT) != 0;
}

}  // namespace

absl::StatusOr<LogFile> LogFile::Open(std::string path) {
  if (path == kStandardError) return LogFile(std::move(path), STDERR_FILENO);
  ATTENDANT_ASSIGN_OR_RETURN(const int descriptor, OpenForAppend(path));
  return LogFile(std::move(path), descriptor);
}

LogFile::LogFile(LogFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      torn_(other.torn_) {}

LogFile::~LogFile() {
  if (descriptor_ > STDERR_FILENO) close(descriptor_);
}

bool LogFile::Append(absl::string_view line, const std::atomic<bool>& give_up) {
  if (!Writable(descriptor_, give_up)) return false;
  const std::string text = absl::StrCat(torn_ ? "\n" : "", line);
  ssize_t written = 0;
  do {
    written = write(descriptor_, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return false;
  const bool whole = static_cast<size_t>(written) == text.size();
  if (written > 0) torn_ = !whole;
  return whole;
}

void LogFile::Renew() {
  if (path_ == kStandardError) return;
  struct stat named {};
  struct stat opened {};
  const bool same = stat(path_.c_str(), &named) == 0 && fstat(descriptor_, &opened) == 0 &&
                    named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
  if (same) return;
  const absl::StatusOr<int> descriptor = OpenForAppend(path_);
  if (!descriptor.ok()) return;
  close(std::exchange(descriptor_, *descriptor));
  torn_ = false;
}

}  // namespace attendant
