// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/base/regular_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/core/status_macros.h"

namespace attendant {

absl::Status FileError(int error, absl::string_view action, absl::string_view path) {
  const absl::Status status =
      absl::ErrnoToStatus(error, absl::StrCat("cannot ", action, " ", path));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(absl::StrCat(path, ": no such file"));
    case ELOOP:
      return absl::InvalidArgumentError(absl::StrCat(path, ": the links lead in a circle"));
    case ENODEV:
    case ENXIO:  // a socket, or a device that is not there
      return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOMEDIUM:
    case EREMOTEIO:
    case ESHUTDOWN:
    case ESTALE:
    case ETIMEDOUT:
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ENOTCONN:  // a file system in user space whose process ended
      return absl::UnavailableError(status.message());
    default:
      return status;
  }
}

absl::StatusOr<RegularFile> RegularFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe would wait for its writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return FileError(errno, "open", path);
  RegularFile file(descriptor);
  if (fstat(descriptor, &file.status_) != 0) return FileError(errno, "examine", path);
  if (!S_ISREG(file.status_.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  return file;
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), status_(other.status_) {}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<bool> IsFile(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0) return S_ISREG(status.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return FileError(errno, "examine", path);
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, int64_t max_bytes) {
  ATTENDANT_ASSIGN_OR_RETURN(RegularFile file, RegularFile::Open(path));
  if (file.bytes() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", file.bytes(), " bytes, the limit is ", max_bytes));
  }
  std::string text(static_cast<size_t>(file.bytes()), '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t count = read(file.descriptor(), text.data() + filled, text.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(errno, "read", path);
    if (count == 0) break;  // it became shorter meanwhile
    filled += static_cast<size_t>(count);
  }
  text.resize(filled);
  return text;
}

}  // namespace attendant
