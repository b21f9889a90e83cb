// SPDX-License-Identifier: Apache-2.0
#include "server/threads/steady_time.h"

#include <chrono>

namespace attendant {
namespace {

// std::condition_variable_any wants a lock with these names.
class Relockable {
 public:
  explicit Relockable(absl::Mutex& mutex) : mutex_(mutex) {}
  void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Lock(); }
  void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }

 private:
  absl::Mutex& mutex_;
};

}  // namespace

absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

void SteadyCondVar::WaitUntil(absl::Mutex& mutex, absl::Time deadline) {
  Relockable lock(mutex);
  if (deadline == absl::InfiniteFuture()) return condition_.wait(lock);
  const absl::Duration left = deadline - absl::UnixEpoch();
  condition_.wait_until(lock,
                        std::chrono::steady_clock::time_point(absl::ToChronoNanoseconds(left)));
}

}  // namespace attendant
