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
namespace {

constexpr absl::Duration kMaxRetryPause = absl::Minutes(1);

}  // namespace

void ModelRegistry::Entry::FailIdleLoad(const absl::Status& why, absl::Duration first_retry) {
  if (absl::IsResourceExhausted(why)) {
    status.state = ModelState::kIdle;
    retry_pause = first_retry;
  } else {
    status.state = ModelState::kIdleFailed;
    retry_pause = std::min(std::max(2 * retry_pause, first_retry), kMaxRetryPause);
  }
  next_try = SteadyNow() + retry_pause;
}

bool ModelRegistry::Entry::NeedsLoad() const { return status.IsIdle() && next_try <= SteadyNow(); }

bool ModelRegistry::NeedsLoad(absl::string_view name, absl::string_view version) const {
  if (!any_idle_.load(std::memory_order_relaxed)) return false;
  absl::ReaderMutexLock lock(&mutex_);
  const absl::StatusOr<const Entry*> entry = Choose(name, version);
  return entry.ok() && (*entry)->NeedsLoad();
}

void ModelRegistry::LoadIdle(const std::string& name, Done then) {
  AddJob({.kind = LoadJob::Kind::kLoadIdle, .name = name}, std::move(then));
}

bool ModelRegistry::AnyNeedsLoad(const std::string& name) const {
  return std::any_of(entries_.begin(), entries_.end(), [&name](const auto& entry) {
    return entry->status.name == name && entry->NeedsLoad();
  });
}

std::vector<ModelRegistry::Done> ModelRegistry::TakeIdleLoads(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (AnyNeedsLoad(name)) return {};
  return jobs_.Remove({.kind = LoadJob::Kind::kLoadIdle, .name = name});
}

void ModelRegistry::RunLoadIdle(const std::string& name, bool only_failed) {
  std::vector<ModelSource> sources;
  {
    absl::ReaderMutexLock lock(&mutex_);
    for (const auto& entry : entries_) {
      if (entry->status.name != name || !entry->NeedsLoad()) continue;
      if (only_failed && entry->status.state != ModelState::kIdleFailed) continue;
      sources.push_back(entry->source);
    }
  }
  for (const ModelSource& source : sources) LoadVersion(source).IgnoreError();
}

// All loaded versions of a model become idle together: a request does not load one of them for the
// others. One that failed keeps no other loaded. One that could not be loaded anew keeps all: what
// serves may not come back. One that has stalled is in use: its memory would not come free.
absl::Time ModelRegistry::IdleSince(const std::string& name, absl::Time now) const {
  std::optional<absl::Time> since;
  for (const auto& entry : entries_) {
    if (entry->status.name != name || entry->built_in) continue;
    if (entry->status.state != ModelState::kReady) continue;
    if (!entry->status.error.ok()) return absl::InfiniteFuture();
    const bool used = entry->status.model.use_count() > 1 || entry->status.stalled_workers > 0;
    const absl::Time last = used ? now : entry->status.model->last_used();
    since = std::max(since.value_or(last), last);
  }
  return since.value_or(absl::InfiniteFuture());
}

absl::Time ModelRegistry::NextIdle(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  if (options_.unload_idle == absl::InfiniteDuration()) return next;
  for (const auto& entry : entries_) {
    next = std::min(next, IdleSince(entry->status.name, now) + options_.unload_idle);
  }
  return next;
}

const ModelRegistry::Entry* ModelRegistry::NextRetry() const {
  const Entry* next = nullptr;
  for (const auto& entry : entries_) {
    if (entry->status.state != ModelState::kIdleFailed) continue;
    if (next == nullptr || entry->next_try < next->next_try) next = entry.get();
  }
  return next;
}

void ModelRegistry::UnloadIdle() {
  std::vector<ModelStatus> changed;
  std::vector<int64_t> given_up;
  {
    absl::MutexLock lock(&mutex_);
    if (draining_ || options_.unload_idle == absl::InfiniteDuration()) return;
    const absl::Time now = SteadyNow();
    std::vector<Entry*> idle;  // nobody can begin to share in a model while the lock is held
    for (const auto& entry : entries_) {
      if (entry->status.state != ModelState::kReady || entry->built_in) continue;
      if (IdleSince(entry->status.name, now) + options_.unload_idle <= now) {
        idle.push_back(entry.get());
      }
    }
    for (Entry* entry : idle) {
      given_up.push_back(entry->status.model->life_id);
      GiveUp(*entry);
      entry->status.state = ModelState::kIdle;
      changed.push_back(entry->status);
    }
    UpdateAnyIdle();
  }
  for (const ModelStatus& status : changed) Notify(status);
  // So that the next load finds their memory.
  reaper_.AwaitFreed(given_up, SteadyNow() + ModelReaper::kEndTime);
}

void ModelRegistry::UpdateAnyIdle() {
  any_idle_ = std::any_of(entries_.begin(), entries_.end(),
                          [](const auto& entry) { return entry->status.IsIdle(); });
}

}  // namespace attendant
