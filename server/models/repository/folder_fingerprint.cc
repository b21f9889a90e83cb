// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/folder_fingerprint.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

absl::Status Unlisted(const std::string& directory, const std::error_code& error) {
  return absl::UnavailableError(absl::StrCat(directory, ": ", error.message()));
}

// Also a link that leads to nothing, or to itself.
bool IsAbsent(const std::error_code& error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory ||
         error == std::errc::too_many_symbolic_link_levels;
}

// Empty after an error, and for what is no file.
std::string DescribeFile(const fs::path& path, std::error_code& error) {
  const fs::file_status found = fs::status(path, error);
  if (error || !fs::is_regular_file(found)) return "";
  const fs::path real = fs::canonical(path, error);
  if (error) return "";
  const auto bytes = fs::file_size(real, error);
  if (error) return "";
  const auto time = fs::last_write_time(real, error).time_since_epoch().count();
  if (error) return "";
  return absl::StrCat(path.string(), "|", real.string(), "|", bytes, "|", time);
}

}  // namespace

// Folders in it that may not be read are left out: a model has no use for them.
absl::StatusOr<std::string> FolderFingerprint(const std::string& directory) {
  std::error_code error;
  const fs::directory_iterator readable(directory, error);  // the next would take it for empty
  if (error) return Unlisted(directory, error);
  std::vector<std::string> files;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(directory, options, error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code failed;
    const std::string file = DescribeFile(entry->path(), failed);
    if (failed && !IsAbsent(failed)) return Unlisted(entry->path(), failed);
    if (!file.empty()) files.push_back(file);
  }
  if (error) return Unlisted(directory, error);
  std::sort(files.begin(), files.end());
  return absl::StrJoin(files, "\n");
}

}  // namespace attendant
