// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/repository_changes.h"

namespace attendant {

RepositoryChanges::RepositoryChanges(absl::Duration settle, const Fingerprints& loaded)
    : settle_(settle) {
  for (const auto& [name, fingerprint] : loaded) {
    models_[name] = {.handled = fingerprint, .seen = fingerprint, .since = absl::InfinitePast()};
  }
}

RepositoryChanges::Changes RepositoryChanges::Update(const Fingerprints& found, absl::Time now) {
  for (const auto& [name, fingerprint] : found) models_.try_emplace(name);
  Changes changes;
  for (auto entry = models_.begin(); entry != models_.end();) {
    auto& [name, model] = *entry;
    const auto now_found = found.find(name);
    const std::string seen = now_found == found.end() ? std::string() : now_found->second;
    if (model.seen != seen) {
      model.seen = seen;
      model.since = now;
    }
    const bool settled = now - model.since >= settle_;
    if (settled && model.seen != model.handled) {
      (model.seen.empty() ? changes.unload : changes.load).push_back(name);
      model.handled = model.seen;
    }
    const bool gone = model.seen.empty() && model.handled.empty();
    entry = gone ? models_.erase(entry) : std::next(entry);
  }
  return changes;
}

void RepositoryChanges::Repeat(const std::string& name) { models_[name].handled = kUnknown; }

}  // namespace attendant
