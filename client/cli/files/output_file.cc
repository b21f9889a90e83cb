// SPDX-License-Identifier: Apache-2.0
#include "client/cli/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace attendant::client {
namespace {

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write the file ", path, ": ", std::strerror(error)));
}

// The file itself, behind links, where a new one can take its place and nobody notices. Empty for
// what is no file, has several names, or is another user's.
std::string ReplaceableFile(const std::string& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return errno == ENOENT ? path : "";
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error);
  if (error || stat(real.c_str(), &found) != 0) return "";
  const bool own = found.st_uid == geteuid() && found.st_nlink == 1;
  return own && S_ISREG(found.st_mode) ? real : "";
}

// A new file with the permissions of `target`, where that is there. -1: the folder takes none.
int MakeLike(const std::string& target, const std::string& path) {
  const int made = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  struct stat found {};
  if (made < 0 || stat(target.c_str(), &found) != 0) return made;
  if (fchmod(made, found.st_mode & 07777) == 0) return made;
  close(made);
  unlink(path.c_str());
  return -1;
}

// The system's error, 0 for none. Null: it could not be opened.
int WriteAndClose(std::FILE* file, std::span<const absl::string_view> parts) {
  if (file == nullptr) return errno;
  int error = 0;
  for (const absl::string_view part : parts) {
    if (error == 0 && std::fwrite(part.data(), 1, part.size(), file) != part.size()) error = errno;
  }
  if (std::fclose(file) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

absl::Status CheckWritable(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  struct stat found {};
  if (stat(path.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) return CannotWrite(path, EISDIR);
    return access(path.c_str(), W_OK) == 0 ? absl::OkStatus() : CannotWrite(path, errno);
  }
  if (errno != ENOENT) return CannotWrite(path, errno);
  const std::string folder = std::filesystem::path(path).parent_path();
  const bool can_make = access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0;
  return can_make ? absl::OkStatus() : CannotWrite(path, errno);
}

absl::Status WriteFile(const std::string& path, std::span<const absl::string_view> parts) {
  const std::string target = ReplaceableFile(path);
  if (!target.empty()) {
    const std::string draft = absl::StrCat(target, ".", getpid(), ".tmp");
    if (const int made = MakeLike(target, draft); made >= 0) {
      int error = WriteAndClose(fdopen(made, "wb"), parts);
      if (error == 0 && std::rename(draft.c_str(), target.c_str()) != 0) error = errno;
      if (error == 0) return absl::OkStatus();
      unlink(draft.c_str());
      return CannotWrite(path, error);
    }
  }
  const int error = WriteAndClose(std::fopen(path.c_str(), "wbe"), parts);
  return error == 0 ? absl::OkStatus() : CannotWrite(path, error);
}

}  // namespace attendant::client
