// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/repository_watcher.h"

#include <utility>
#include <vector>

#include "kernels/core/status_macros.h"
#include "server/threads/steady_time.h"

namespace attendant {

absl::StatusOr<RepositoryContent> ReadContent(const ModelRepository& repository) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names, repository.Names());
  RepositoryContent content;
  for (const std::string& name : names) {
    absl::StatusOr<std::string> fingerprint = repository.Fingerprint(name);
    if (fingerprint.ok()) {
      content.models[name] = *std::move(fingerprint);
    } else if (!absl::IsNotFound(fingerprint.status())) {  // it is gone since
      content.refused[name] = fingerprint.status();
    }
  }
  return content;
}

RepositoryWatcher::RepositoryWatcher(const ModelRepository& repository, ModelRegistry& registry,
                                     Options options, const RepositoryContent& at_start)
    : repository_(repository),
      registry_(registry),
      options_(std::move(options)),
      changes_(options_.settle, at_start.models),
      refused_(at_start.refused),
      thread_("repository", options_.interval, [this] { Look(); }) {}

// How a load ends, the registry's listener hears.
void RepositoryWatcher::Look() {
  absl::StatusOr<RepositoryContent> found = ReadContent(repository_);
  const bool was_readable = std::exchange(readable_, found.ok());
  if (!found.ok()) {
    if (was_readable) options_.on_unreadable(found.status());
    return;
  }
  for (const auto& [name, status] : found->refused) {
    if (!refused_.contains(name)) options_.on_refused(status);
  }
  refused_ = std::move(found->refused);
  std::erase_if(found->models,
                [this](const auto& model) { return !options_.is_ours(model.first); });
  const RepositoryChanges::Changes changes = changes_.Update(found->models, SteadyNow());
  for (const std::string& name : changes.load) registry_.Load(name, [](const absl::Status&) {});
  for (const std::string& name : changes.unload) {
    registry_.Unload(name, [](const absl::Status&) {});
  }
}

}  // namespace attendant
