// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/model_repository.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/base/quote.h"
#include "kernels/core/status_macros.h"
#include "server/models/model_name.h"
#include "server/models/repository/folder_fingerprint.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

bool IsGone(const std::error_code& error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
}

absl::Status Unreadable(const fs::path& path, const std::error_code& error) {
  return absl::UnavailableError(absl::StrCat(path.string(), ": ", error.message()));
}

// not_found without an error for a path that is not there.
fs::file_type TypeOf(const fs::path& path, std::error_code& error) {
  std::error_code found;
  const fs::file_type type = fs::status(path, found).type();
  if (type == fs::file_type::none) error = found;
  return type;
}

// The encoder's config.json may lie in a folder that modules.json names.
absl::StatusOr<bool> IsModelFolder(const fs::path& path) {
  std::error_code error;
  const bool found = TypeOf(path / "config.json", error) == fs::file_type::regular ||
                     TypeOf(path / "modules.json", error) == fs::file_type::regular;
  if (error) return Unreadable(path, error);
  return found;
}

// 0 for a name that is no version: versions have one spelling.
int64_t VersionOf(const std::string& name) {
  int64_t version = 0;
  const bool number = absl::SimpleAtoi(name, &version) && absl::StrCat(version) == name;
  return number ? std::max<int64_t>(version, 0) : 0;
}

// Also what may be a folder, but cannot be read.
std::vector<fs::path> FoldersIn(const fs::path& directory, std::error_code& error) {
  std::vector<fs::path> folders;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unreadable;
    const fs::file_type type = TypeOf(entry->path(), unreadable);
    if (type == fs::file_type::directory || unreadable) folders.push_back(entry->path());
  }
  return folders;
}

// Ascending by version. UNAVAILABLE: whether there are any cannot be read now.
absl::StatusOr<std::vector<ModelSource>> VersionsIn(const fs::path& folder,
                                                    const std::string& name) {
  ATTENDANT_ASSIGN_OR_RETURN(const bool single, IsModelFolder(folder));
  std::vector<ModelSource> sources;
  if (single) {
    sources.push_back({.name = name, .directory = folder.string()});
    return sources;
  }
  std::error_code error;
  const std::vector<fs::path> paths = FoldersIn(folder, error);
  if (error && !IsGone(error)) return Unreadable(folder, error);
  for (const fs::path& path : paths) {
    const int64_t version = VersionOf(path.filename().string());
    if (version == 0) continue;
    ATTENDANT_ASSIGN_OR_RETURN(const bool is_model, IsModelFolder(path));
    if (!is_model) continue;
    sources.push_back({.name = name, .directory = path.string(), .version = version});
  }
  std::sort(sources.begin(), sources.end(),
            [](const ModelSource& a, const ModelSource& b) { return a.version < b.version; });
  return sources;
}

absl::Status CheckInside(const fs::path& repository, const fs::path& path) {
  std::error_code error;
  const fs::path root = fs::canonical(repository, error);
  const fs::path real = error ? fs::path() : fs::canonical(path, error);
  if (error && !IsGone(error)) return Unreadable(path, error);
  if (error) return absl::NotFoundError(absl::StrCat(path.string(), ": ", error.message()));
  if (std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end()) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat(path.string(), " leads out of the model repository"));
}

// UNAVAILABLE: not all of their files can be listed now.
absl::StatusOr<std::string> Fingerprint(const std::vector<ModelSource>& versions) {
  std::string files;
  for (const ModelSource& version : versions) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::string found, FolderFingerprint(version.directory));
    absl::StrAppend(&files, found, "\n");
  }
  return files;
}

}  // namespace

ModelRepository::ModelRepository(std::string directory, int64_t versions)
    : directory_(std::move(directory)), versions_(versions) {}

absl::StatusOr<RepositoryContent> ModelRepository::Read() const {
  ATTENDANT_ASSIGN_OR_RETURN(const bool is_model, IsModelFolder(directory_));
  if (is_model) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory_, " is a model itself: give --model NAME=", directory_));
  }
  std::error_code error;
  RepositoryContent content;
  for (const fs::path& folder : FoldersIn(directory_, error)) {
    const std::string name = folder.filename().string();
    if (name.front() == '.') continue;
    absl::StatusOr<std::vector<ModelSource>> versions = VersionsIn(folder, name);
    if (versions.ok() && versions->empty()) continue;
    if (const absl::Status named = CheckModelName(name); !named.ok()) versions = named;
    if (versions.ok()) versions = Choose(*std::move(versions));
    absl::StatusOr<std::string> fingerprint =
        versions.ok() ? Fingerprint(*versions) : versions.status();
    if (fingerprint.ok()) {
      content.models[name] = {*std::move(versions), *std::move(fingerprint)};
    } else if (!absl::IsNotFound(fingerprint.status())) {  // it is gone since
      content.refused[name] = fingerprint.status();
      if (absl::IsUnavailable(fingerprint.status())) content.unreadable.insert(name);
    }
  }
  if (error) return Unreadable(directory_, error);
  return content;
}

absl::StatusOr<std::vector<ModelSource>> ModelRepository::Find(const std::string& name) const {
  ATTENDANT_RETURN_IF_ERROR(CheckModelName(name));  // else it may name a folder elsewhere
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<ModelSource> found,
                             VersionsIn(fs::path(directory_) / name, name));
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat("the model repository has no model ", Quote(name)));
  }
  return Choose(std::move(found));
}

absl::StatusOr<std::vector<ModelSource>> ModelRepository::Choose(
    std::vector<ModelSource> sources) const {
  if (static_cast<int64_t>(sources.size()) > versions_) {
    sources.erase(sources.begin(), sources.end() - versions_);
  }
  for (const ModelSource& source : sources) {
    ATTENDANT_RETURN_IF_ERROR(CheckInside(directory_, source.directory));
  }
  return sources;
}

}  // namespace attendant
