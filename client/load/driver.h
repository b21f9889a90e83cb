// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/load/caller.h"
#include "client/load/clock.h"
#include "client/load/recorder.h"
#include "client/load/schedule.h"

namespace attendant::client {

struct LoadPlan {
  // 0 is a closed loop: max_outstanding calls run at all times, each answer sends the next request.
  // Else an open loop: requests are sent at the times of `arrivals`, whether or not answers come.
  double requests_per_s = 0;
  int64_t max_outstanding = 1;
  int64_t connections = 1;
  absl::Duration warmup = absl::ZeroDuration();
  absl::Duration duration = absl::InfiniteDuration();  // after the warm-up
  int64_t max_requests = 0;                            // after the warm-up; 0 is no limit
  uint64_t seed = 1;
  Arrivals arrivals = {};  // open loop; a trace has its own rate, and requests_per_s is its mean

  bool open_loop() const { return requests_per_s > 0; }
  absl::Duration end() const { return warmup + duration; }
};

// The next step of a load.
enum class Course {
  kGoOn,
  kFinish,     // sends no more requests, as at the end of the plan, and waits for those that run
  kInterrupt,  // cancels the calls that run
};

// Plays a plan. The thread of Run sends the requests of an open loop; the threads of the Caller
// send those of a closed loop.
class Driver {
 public:
  // All must outlive the driver; `recorder` has the plan's window.
  Driver(const LoadPlan& plan, Caller& caller, LoadClock& clock, Recorder& recorder);

  // Returns when the plan is done and every call has ended. Calls `course` on this thread at least
  // ten times a second; what it returns but kGoOn, it returns from then on, or kInterrupt after
  // kFinish. Call Run once.
  void Run(const std::function<Course()>& course);

  // Calls that were sent and have not ended. `course` may ask.
  int64_t outstanding() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void RunClosedLoop(const std::function<Course()>& course);
  void RunOpenLoop(const std::function<Course()>& course);
  void SendIntended(int64_t index, absl::Duration intended);
  // Ends the window when the load is to finish.
  bool GoesOn(Course course);
  bool SleepUntil(absl::Duration time, const std::function<Course()>& course);
  void Drain(const std::function<Course()>& course);

  // Takes one of max_requests for a request meant for `now`.
  bool TakeRequest(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closed loop: sends the next request of a slot, or gives the slot up.
  void SendNext(int64_t slot) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends the calls of slots that an unreachable server has stopped.
  void ResumeSlots() ABSL_LOCKS_EXCLUDED(mutex_);

  const LoadPlan plan_;
  Caller& caller_;
  LoadClock& clock_;
  Recorder& recorder_;

  mutable absl::Mutex mutex_;
  int64_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_index_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t num_measured_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<int64_t> paused_slots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::client
