// SPDX-License-Identifier: Apache-2.0
#include "client/cli/files/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace attendant::client {
namespace {

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write the file ", path, ": ", std::strerror(error)));
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
  std::FILE* const file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) return CannotWrite(path, errno);
  int error = 0;
  for (const absl::string_view part : parts) {
    if (error == 0 && std::fwrite(part.data(), 1, part.size(), file) != part.size()) error = errno;
  }
  if (std::fclose(file) != 0 && error == 0) error = errno;
  return error == 0 ? absl::OkStatus() : CannotWrite(path, error);
}

}  // namespace attendant::client
