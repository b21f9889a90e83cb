// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/missed_loads.h"

#include <algorithm>

namespace attendant {
namespace {

constexpr absl::Duration kMaxPause = absl::Minutes(1);

}  // namespace

void MissedLoads::End(const std::string& name, const absl::Status& ended, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (!absl::IsUnavailable(ended)) {
    models_.erase(name);
    return;
  }
  Model& model = models_[name];
  model.next_try = now + model.pause;
  model.pause = std::min(std::max(2 * model.pause, first_pause_), kMaxPause);
}

std::vector<std::string> MissedLoads::TakeDue(const std::set<std::string>& unreadable,
                                              absl::Time now) {
  std::vector<std::string> due;
  absl::MutexLock lock(&mutex_);
  for (auto& [name, model] : models_) {
    if (now < model.next_try || unreadable.contains(name)) continue;
    model.next_try = absl::InfiniteFuture();
    due.push_back(name);
  }
  return due;
}

}  // namespace attendant
