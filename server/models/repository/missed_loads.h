// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant {

// The models whose load ended as UNAVAILABLE: not by a fault of their files, so that it may succeed
// though they do not change. Each is tried again at once, then after `pause`, and then each time
// after twice as long, at most a minute. Thread-safe.
class MissedLoads {
 public:
  explicit MissedLoads(absl::Duration pause) : first_pause_(pause) {}

  // A load or unload of the model ended.
  void End(const std::string& name, const absl::Status& ended, absl::Time now);

  // The models to try again now, without those in `unreadable`. None is in it twice, unless its
  // next try ends too.
  std::vector<std::string> TakeDue(const std::set<std::string>& unreadable, absl::Time now);

 private:
  struct Model {
    absl::Duration pause = absl::ZeroDuration();
    absl::Time next_try = absl::InfiniteFuture();  // while a try goes on: none
  };

  const absl::Duration first_pause_;
  absl::Mutex mutex_;
  std::map<std::string, Model> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
