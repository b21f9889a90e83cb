// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/folder_fingerprint.h"

#include <algorithm>
#include <filesystem>
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
    std::error_code absent;
    const fs::path real = fs::weakly_canonical(entry->path(), absent);
    if (!fs::is_regular_file(real, absent)) continue;
    const auto bytes = fs::file_size(real, absent);
    const auto time = fs::last_write_time(real, absent).time_since_epoch().count();
    files.push_back(
        absl::StrCat(entry->path().string(), "|", real.string(), "|", bytes, "|", time));
  }
  if (error) return Unlisted(directory, error);
  std::sort(files.begin(), files.end());
  return absl::StrJoin(files, "\n");
}

}  // namespace attendant
