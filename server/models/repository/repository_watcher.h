// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/models/registry/model_registry.h"
#include "server/models/repository/missed_loads.h"
#include "server/models/repository/model_repository.h"
#include "server/models/repository/repository_changes.h"
#include "server/threads/periodic_thread.h"

namespace attendant {

// Reads a repository again and again on a thread of its own, and has the registry load and unload
// the models that changed (RepositoryChanges). The registry decides which of their versions it
// loads (ModelRegistry::Load). While the repository, or a model in it, cannot be read, it does not
// change. What cannot wait for its turn at the registry is tried again at the next look, and what
// is UNAVAILABLE in its turn, at a later look that can read it (MissedLoads).
class RepositoryWatcher {
 public:
  struct Options {
    absl::Duration interval;
    absl::Duration settle;
    // Returns false if another source already serves a model of this name.
    std::function<bool(const std::string& name)> is_ours;
    std::function<void(const absl::Status&)> on_unreadable;  // each time that it begins
    // Once for each name while it is there, and once when loads find no room to wait.
    std::function<void(const absl::Status&)> on_refused;
  };

  // `at_start`: what was loaded and refused then. Both references must outlive the watcher.
  RepositoryWatcher(const ModelRepository& repository, ModelRegistry& registry, Options options,
                    const RepositoryContent& at_start);

 private:
  using Change = absl::Status (ModelRegistry::*)(const std::string& name, ModelRegistry::Done done);

  void Look();
  // RESOURCE_EXHAUSTED: too many loads and unloads wait.
  absl::Status Start(Change change, const std::string& name);

  const ModelRepository& repository_;
  ModelRegistry& registry_;
  const Options options_;
  RepositoryChanges changes_;
  RepositoryChanges::Fingerprints last_;         // as the last look found it
  std::map<std::string, absl::Status> refused_;  // as the last look found it
  bool readable_ = true;
  bool has_room_ = true;                       // for the changes of the last look
  const std::shared_ptr<MissedLoads> missed_;  // the registry may add to it after the watcher's end
  PeriodicThread thread_;                      // last: it calls Look
};

}  // namespace attendant
