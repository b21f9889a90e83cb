// SPDX-License-Identifier: Apache-2.0
#include "server/requests/model_waits.h"

#include <pthread.h>

namespace attendant {

ModelWaits::ModelWaits() : thread_([this] { Watch(); }) {
  pthread_setname_np(thread_.native_handle(), "model-waits");
}

ModelWaits::~ModelWaits() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.Signal();
  }
  thread_.join();
}

ModelWaits::Id ModelWaits::Add(absl::Time deadline, Done done) {
  absl::MutexLock lock(&mutex_);
  const Id id = ++last_id_;
  waits_.emplace(id, Wait{deadline, std::move(done)});
  if (deadline != absl::InfiniteFuture()) {
    const auto [place, inserted] = expiries_.emplace(deadline, id);
    if (place == expiries_.begin()) changed_.Signal();
  }
  return id;
}

void ModelWaits::End(Id id, const absl::Status& status) {
  Done done;
  {
    absl::MutexLock lock(&mutex_);
    done = Take(id);
  }
  if (done != nullptr) done(status);
}

ModelWaits::Done ModelWaits::Take(Id id) {
  const auto found = waits_.find(id);
  if (found == waits_.end()) return nullptr;
  Done done = std::move(found->second.done);
  expiries_.erase({found->second.deadline, id});
  waits_.erase(found);
  return done;
}

void ModelWaits::Watch() {
  while (true) {
    Done expired;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      const absl::Time next = expiries_.empty() ? absl::InfiniteFuture() : expiries_.begin()->first;
      if (next > SteadyNow()) {
        changed_.WaitUntil(mutex_, next);
        continue;
      }
      expired = Take(expiries_.begin()->second);
    }
    expired(absl::DeadlineExceededError("the deadline passed before the model was loaded"));
  }
}

}  // namespace attendant
