// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/idle_policy.h"

#include <algorithm>
#include <optional>

namespace attendant {
namespace {

constexpr absl::Duration kMaxRetryPause = absl::Minutes(1);

// Since when no loaded version of the model is used. Infinite when none is to be unloaded.
absl::Time IdleSince(const std::vector<ModelEntry>& entries, absl::string_view name,
                     absl::Time now) {
  std::optional<absl::Time> since;
  for (const ModelEntry& entry : entries) {
    if (entry.status.name != name || entry.built_in) continue;
    if (entry.status.state != ModelState::kReady) continue;
    if (entry.load_owed) return absl::InfiniteFuture();
    const bool used = entry.status.model.use_count() > 1 || entry.status.stalled_workers > 0;
    const absl::Time last = used ? now : entry.status.model->last_used();
    since = std::max(since.value_or(last), last);
  }
  return since.value_or(absl::InfiniteFuture());
}

// The version that is to be tried again first without a request. Null: there is none.
const ModelEntry* NextRetry(const std::vector<ModelEntry>& entries) {
  const ModelEntry* next = nullptr;
  for (const ModelEntry& entry : entries) {
    if (entry.status.state != ModelState::kIdleFailed) continue;
    if (next == nullptr || entry.next_try < next->next_try) next = &entry;
  }
  return next;
}

}  // namespace

absl::Time IdlePolicy::UnloadTime(const std::vector<ModelEntry>& entries, absl::string_view name,
                                  absl::Time now) const {
  if (unload_idle_ == absl::InfiniteDuration()) return absl::InfiniteFuture();
  return IdleSince(entries, name, now) + unload_idle_;
}

absl::Time IdlePolicy::NextTime(const std::vector<ModelEntry>& entries, absl::Time now) const {
  const ModelEntry* const retry = NextRetry(entries);
  absl::Time next = retry == nullptr ? absl::InfiniteFuture() : retry->next_try;
  for (const ModelEntry& entry : entries) {
    next = std::min(next, UnloadTime(entries, entry.status.name, now));
  }
  return next;
}

std::vector<std::string> IdlePolicy::IdleModels(const std::vector<ModelEntry>& entries,
                                                absl::Time now) const {
  std::vector<std::string> idle;
  for (const ModelEntry& entry : entries) {
    const std::string& name = entry.status.name;
    if (!idle.empty() && idle.back() == name) continue;  // versions of a model are neighbours
    if (UnloadTime(entries, name, now) <= now) idle.push_back(name);
  }
  return idle;
}

const ModelEntry* IdlePolicy::DueRetry(const std::vector<ModelEntry>& entries, absl::Time now) {
  const ModelEntry* const retry = NextRetry(entries);
  return retry != nullptr && retry->next_try <= now ? retry : nullptr;
}

void IdlePolicy::FailLoad(ModelEntry& entry, const absl::Status& why, absl::Time now) const {
  if (absl::IsResourceExhausted(why)) {
    entry.status.state = ModelState::kIdle;
    entry.retry_pause = first_retry_;
  } else {
    entry.status.state = ModelState::kIdleFailed;
    entry.retry_pause = std::min(std::max(2 * entry.retry_pause, first_retry_), kMaxRetryPause);
  }
  entry.next_try = now + entry.retry_pause;
}

}  // namespace attendant
