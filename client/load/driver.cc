// SPDX-License-Identifier: Apache-2.0
#include "client/load/driver.h"

#include <sys/prctl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace attendant::client {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kDrainTick = absl::Milliseconds(5);

}  // namespace

void SteadyClock::SleepUntil(absl::Duration time) {
  // By default Linux may wake a sleeper 50 us late, to save power.
  static thread_local const int precise = prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  static_cast<void>(precise);
  std::this_thread::sleep_until(start_ + absl::ToChronoNanoseconds(time));
}

Driver::Driver(const LoadPlan& plan, Caller& caller, LoadClock& clock, Recorder& recorder)
    : plan_(plan), caller_(caller), clock_(clock), recorder_(recorder) {}

void Driver::Run(const std::function<Course()>& course) {
  if (plan_.open_loop()) {
    RunOpenLoop(course);
  } else {
    RunClosedLoop(course);
  }
  Drain(course);
}

int64_t Driver::outstanding() const {
  absl::MutexLock lock(&mutex_);
  return outstanding_;
}

bool Driver::TakeRequest(absl::Duration now) {
  if (stopping_ || now >= plan_.end()) return false;
  if (now < plan_.warmup || plan_.max_requests == 0) return true;
  return num_measured_++ < plan_.max_requests;
}

void Driver::SendNext(int64_t slot) {
  const absl::Duration now = clock_.Now();
  int64_t index = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (!TakeRequest(now)) {
      --outstanding_;
      return;
    }
    index = next_index_++;
  }
  caller_.Start(index, slot % plan_.connections, [this, slot, now](const CallResult& result) {
    recorder_.Finished({.intended = now, .sent = now, .finished = clock_.Now()}, result);
    if (result.code != grpc::StatusCode::UNAVAILABLE) return SendNext(slot);
    // A new call would fail again at once: wait for the next tick.
    absl::MutexLock lock(&mutex_);
    paused_slots_.push_back(slot);
    --outstanding_;
  });
}

void Driver::ResumeSlots() {
  std::vector<int64_t> slots;
  {
    absl::MutexLock lock(&mutex_);
    slots.swap(paused_slots_);
    outstanding_ += static_cast<int64_t>(slots.size());
  }
  for (int64_t slot : slots) SendNext(slot);
}

void Driver::RunClosedLoop(const std::function<Course()>& course) {
  {
    absl::MutexLock lock(&mutex_);
    for (int64_t slot = 0; slot < plan_.max_outstanding; ++slot) paused_slots_.push_back(slot);
  }
  const auto busy = [this] {
    absl::MutexLock lock(&mutex_);
    return outstanding_ > 0 || !paused_slots_.empty();
  };
  do {
    ResumeSlots();
  } while (busy() && SleepUntil(std::min(clock_.Now() + kTick, plan_.end()), course) &&
           clock_.Now() < plan_.end());
}

void Driver::RunOpenLoop(const std::function<Course()>& course) {
  const std::unique_ptr<Schedule> schedule =
      MakeSchedule(plan_.arrivals, plan_.requests_per_s, plan_.seed);
  // A request that is not sent takes its index with it: those of a trace keep their contents.
  int64_t index = 0;
  while (const std::optional<absl::Duration> intended = schedule->Next()) {
    if (!SleepUntil(std::min(*intended, plan_.end()), course)) return;
    bool send = false;
    {
      absl::MutexLock lock(&mutex_);
      if (!TakeRequest(*intended)) return;
      send = outstanding_ < plan_.max_outstanding;
      outstanding_ += send ? 1 : 0;
    }
    if (send) {
      SendIntended(index, *intended);
    } else {
      recorder_.NotSent(*intended);
    }
    ++index;
  }
}

void Driver::SendIntended(int64_t index, absl::Duration intended) {
  const absl::Duration sent = clock_.Now();
  recorder_.Sent(intended, sent);
  caller_.Start(index, index % plan_.connections, [this, intended, sent](const CallResult& result) {
    recorder_.Finished({.intended = intended, .sent = sent, .finished = clock_.Now()}, result);
    absl::MutexLock lock(&mutex_);
    --outstanding_;
  });
}

bool Driver::GoesOn(Course course) {
  if (course == Course::kFinish) recorder_.EndWindow(clock_.Now());
  return course == Course::kGoOn;
}

bool Driver::SleepUntil(absl::Duration time, const std::function<Course()>& course) {
  while (true) {
    const absl::Duration now = clock_.Now();
    if (now >= time) break;
    clock_.SleepUntil(std::min(time, now + kTick));
    if (!GoesOn(course())) return false;
  }
  return GoesOn(course());
}

void Driver::Drain(const std::function<Course()>& course) {
  while (true) {
    const bool interrupted = course() == Course::kInterrupt;
    if (interrupted) recorder_.Interrupt(clock_.Now());
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
      if (outstanding_ == 0) return;
    }
    // The next round cancels a call that was just being started.
    if (interrupted) caller_.CancelAll();
    clock_.SleepUntil(clock_.Now() + kDrainTick);
  }
}

}  // namespace attendant::client
