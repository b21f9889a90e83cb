// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/folder_fingerprint.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

absl::Status Unlisted(const fs::path& path, const std::error_code& error) {
  return absl::UnavailableError(absl::StrCat(path.string(), ": ", error.message()));
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

// True if `folder` is `other` or holds it.
bool Holds(const fs::path& folder, const fs::path& other) {
  return std::mismatch(folder.begin(), folder.end(), other.begin(), other.end()).first ==
         folder.end();
}

// The files of a folder, and of the folders that its links lead to: each of those once, and none
// that holds the folder itself.
class FolderFiles {
 public:
  explicit FolderFiles(const std::string& directory) : folders_{directory} {}

  // UNAVAILABLE: not all of them can be listed.
  absl::StatusOr<std::vector<std::string>> List() {
    std::error_code error;
    root_ = fs::canonical(folders_.front(), error);
    for (size_t i = 0; !error && i < folders_.size(); ++i) {
      const fs::path folder = folders_[i];
      ATTENDANT_RETURN_IF_ERROR(ListFolder(folder));
    }
    if (error) return Unlisted(folders_.front(), error);
    std::sort(files_.begin(), files_.end());
    return std::move(files_);
  }

 private:
  // Folders in it that may not be read are left out: a model has no use for them.
  absl::Status ListFolder(const fs::path& folder) {
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator entry(folder, options, error), end;
         !error && entry != end; entry.increment(error)) {
      std::error_code failed;
      const std::string file = DescribeFile(entry->path(), failed);
      if (!file.empty()) {
        files_.push_back(file);
      } else if (!failed) {
        FollowLink(*entry, failed);
      }
      if (failed && !IsAbsent(failed)) return Unlisted(entry->path(), failed);
    }
    return error ? Unlisted(folder, error) : absl::OkStatus();
  }

  void FollowLink(const fs::directory_entry& entry, std::error_code& error) {
    if (!entry.is_symlink(error) || error || !entry.is_directory(error) || error) return;
    const fs::path real = fs::canonical(entry.path(), error);
    if (error || Holds(real, root_) || !followed_.insert(real).second) return;
    folders_.push_back(entry.path());
  }

  std::vector<fs::path> folders_;  // the first is `directory`, the others are links
  fs::path root_;                  // of `directory`
  std::set<fs::path> followed_;
  std::vector<std::string> files_;
};

}  // namespace

absl::StatusOr<std::string> FolderFingerprint(const std::string& directory) {
  std::error_code error;
  const fs::directory_iterator readable(directory, error);  // FolderFiles would take it for empty
  if (error) return Unlisted(directory, error);
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> files, FolderFiles(directory).List());
  return absl::StrJoin(files, "\n");
}

}  // namespace attendant
