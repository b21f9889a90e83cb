// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/threads/steady_time.h"

namespace attendant {

// The requests that wait until their models are loaded. The thread that loads them is busy then:
// one more thread ends the waits whose deadlines pass. Thread-safe.
class ModelWaits {
 public:
  using Id = uint64_t;
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  ModelWaits();
  // The callbacks of waits that have not ended are dropped without a call.
  ~ModelWaits();
  ModelWaits(const ModelWaits&) = delete;
  ModelWaits& operator=(const ModelWaits&) = delete;

  // `done` is called once, and freed: by End, or with DEADLINE_EXCEEDED when `deadline`, a steady
  // time, passes; never inside Add.
  Id Add(absl::Time deadline, Done done);
  // Waits that have ended are ignored.
  void End(Id id, const absl::Status& status);

 private:
  struct Wait {
    absl::Time deadline;
    Done done;
  };
  using Expiry = std::pair<absl::Time, Id>;

  void Watch();
  Done Take(Id id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // null: it has ended

  absl::Mutex mutex_;
  SteadyCondVar changed_;  // an earlier deadline, or stopping
  absl::btree_map<Id, Wait> waits_ ABSL_GUARDED_BY(mutex_);
  absl::btree_set<Expiry> expiries_ ABSL_GUARDED_BY(mutex_);  // of waits with a deadline
  Id last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attendant
