// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/repository_watcher.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/threads/steady_time.h"

namespace attendant {

namespace {

RepositoryChanges::Fingerprints FingerprintsOf(const RepositoryContent& content) {
  RepositoryChanges::Fingerprints fingerprints;
  for (const auto& [name, model] : content.models) fingerprints[name] = model.fingerprint;
  return fingerprints;
}

}  // namespace

RepositoryWatcher::RepositoryWatcher(const ModelRepository& repository, ModelRegistry& registry,
                                     Options options, const RepositoryContent& at_start)
    : repository_(repository),
      registry_(registry),
      options_(std::move(options)),
      changes_(options_.settle, FingerprintsOf(at_start)),
      last_(FingerprintsOf(at_start)),
      refused_(at_start.refused),
      missed_(std::make_shared<MissedLoads>(options_.interval)),
      thread_("repository", options_.interval, [this] { Look(); }) {}

void RepositoryWatcher::Look() {
  absl::StatusOr<RepositoryContent> found = repository_.Read();
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
  RepositoryChanges::Fingerprints fingerprints = FingerprintsOf(*found);
  for (const std::string& name : found->unreadable) {
    if (const auto last = last_.find(name); last != last_.end()) fingerprints.insert(*last);
  }
  last_ = std::move(fingerprints);
  for (const std::string& name : missed_->TakeDue(found->unreadable, SteadyNow())) {
    changes_.Repeat(name);
  }
  const RepositoryChanges::Changes changes = changes_.Update(last_, SteadyNow());
  absl::Status no_room;
  for (const std::string& name : changes.load) {
    no_room.Update(Start(&ModelRegistry::StartLoad, name));
  }
  for (const std::string& name : changes.unload) {
    no_room.Update(Start(&ModelRegistry::StartUnload, name));
  }
  const bool had_room = std::exchange(has_room_, no_room.ok());
  if (had_room && !no_room.ok()) {
    options_.on_refused(
        absl::Status(no_room.code(), absl::StrCat("some models for now: ", no_room.message())));
  }
}

absl::Status RepositoryWatcher::Start(Change change, const std::string& name) {
  absl::Status refused = (registry_.*change)(
      name, [missed = missed_, name](const auto& ended) { missed->End(name, ended, SteadyNow()); });
  if (!absl::IsResourceExhausted(refused)) return absl::OkStatus();
  changes_.Repeat(name);
  return refused;
}

}  // namespace attendant
