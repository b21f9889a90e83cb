// SPDX-License-Identifier: Apache-2.0
// Idle models: unloaded for want of requests, and loaded again for the next one. One that could not
// be loaded again is tried again without requests too: it is not ready, so that load balancers may
// send none. One for which memory was short stays ready, and is loaded for requests only: it would
// take the memory of models that are asked for.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/models/registry/model_registry.h"

namespace attendant {

bool ModelRegistry::NeedsLoad(absl::string_view name, absl::string_view version) const {
  if (!any_idle_.load(std::memory_order_relaxed)) return false;
  const absl::Time now = SteadyNow();
  absl::ReaderMutexLock lock(&mutex_);
  const absl::StatusOr<const ModelEntry*> entry = table_.Choose(name, version, now);
  return entry.ok() && (*entry)->NeedsLoad(now);
}

void ModelRegistry::LoadIdle(const std::string& name, Done then) {
  AddJob({.kind = LoadJob::Kind::kLoadIdle, .name = name}, std::move(then));
}

std::vector<ModelRegistry::Done> ModelRegistry::TakeIdleLoads(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (table_.AnyNeedsLoad(name, SteadyNow())) return {};
  return jobs_.Remove({.kind = LoadJob::Kind::kLoadIdle, .name = name});
}

void ModelRegistry::RunLoadIdle(const std::string& name, bool only_failed) {
  std::vector<ModelSource> sources;
  {
    absl::ReaderMutexLock lock(&mutex_);
    sources = table_.Sources(name, [only_failed, now = SteadyNow()](const ModelEntry& entry) {
      if (only_failed && entry.status.state != ModelState::kIdleFailed) return false;
      return entry.NeedsLoad(now);
    });
  }
  for (const ModelSource& source : sources) LoadVersion(source).IgnoreError();
}

// All loaded versions of a model become idle together: a request does not load one of them for the
// others. One that failed keeps no other loaded. One that could not be loaded anew keeps all: what
// serves may not come back. One that has stalled is in use: its memory would not come free.
absl::Time ModelRegistry::IdleSince(const std::string& name, absl::Time now) const {
  std::optional<absl::Time> since;
  for (const ModelEntry& entry : table_.entries()) {
    if (entry.status.name != name || entry.built_in) continue;
    if (entry.status.state != ModelState::kReady) continue;
    if (!entry.status.error.ok()) return absl::InfiniteFuture();
    const bool used = entry.status.model.use_count() > 1 || entry.status.stalled_workers > 0;
    const absl::Time last = used ? now : entry.status.model->last_used();
    since = std::max(since.value_or(last), last);
  }
  return since.value_or(absl::InfiniteFuture());
}

absl::Time ModelRegistry::NextIdle(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  if (options_.unload_idle == absl::InfiniteDuration()) return next;
  for (const ModelEntry& entry : table_.entries()) {
    next = std::min(next, IdleSince(entry.status.name, now) + options_.unload_idle);
  }
  return next;
}

const ModelEntry* ModelRegistry::NextRetry() const {
  const ModelEntry* next = nullptr;
  for (const ModelEntry& entry : table_.entries()) {
    if (entry.status.state != ModelState::kIdleFailed) continue;
    if (next == nullptr || entry.next_try < next->next_try) next = &entry;
  }
  return next;
}

void ModelRegistry::UnloadIdle() {
  if (options_.unload_idle == absl::InfiniteDuration()) return;
  TableChange change;
  std::vector<int64_t> given_up;
  {
    absl::MutexLock lock(&mutex_);  // while it is held, nobody can begin to share in a model
    const absl::Time now = SteadyNow();
    std::vector<std::string> idle;
    for (const ModelEntry& entry : table_.entries()) {
      if (IdleSince(entry.status.name, now) + options_.unload_idle <= now) {
        idle.push_back(entry.status.name);
      }
    }
    change = table_.UnloadIdle(idle);
    given_up = GiveUp(change);
  }
  Notify(change);
  // So that the next load finds their memory.
  reaper_.AwaitFreed(given_up, SteadyNow() + ModelReaper::kEndTime);
}

}  // namespace attendant
