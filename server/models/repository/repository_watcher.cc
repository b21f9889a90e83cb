// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/repository_watcher.h"

#include <utility>
#include <vector>

#include "kernels/core/status_macros.h"
#include "server/threads/steady_time.h"

namespace attendant {

absl::StatusOr<RepositoryChanges::Fingerprints> ReadFingerprints(
    const ModelRepository& repository) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, repository.Names());
  RepositoryChanges::Fingerprints fingerprints;
  for (const std::string& name : names) {
    absl::StatusOr<std::string> fingerprint = repository.Fingerprint(name);
    if (fingerprint.ok()) fingerprints[name] = *std::move(fingerprint);
  }
  return fingerprints;
}

RepositoryWatcher::RepositoryWatcher(const ModelRepository& repository, ModelRegistry& registry,
                                     Options options, const RepositoryChanges::Fingerprints& loaded)
    : repository_(repository),
      registry_(registry),
      options_(std::move(options)),
      changes_(options_.settle, loaded),
      thread_("repository", options_.interval, [this] { Look(); }) {}

// How a load ends, the registry's listener hears.
void RepositoryWatcher::Look() {
  absl::StatusOr<RepositoryChanges::Fingerprints> found = ReadFingerprints(repository_);
  const bool was_readable = std::exchange(readable_, found.ok());
  if (!found.ok()) {
    if (was_readable) options_.on_unreadable(found.status());
    return;
  }
  std::erase_if(*found, [this](const auto& model) { return !options_.is_ours(model.first); });
  const RepositoryChanges::Changes changes = changes_.Update(*found, SteadyNow());
  for (const std::string& name : changes.load) registry_.Load(name, [](const absl::Status&) {});
  for (const std::string& name : changes.unload) {
    registry_.Unload(name, [](const absl::Status&) {});
  }
}

}  // namespace attendant
