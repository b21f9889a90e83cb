// SPDX-License-Identifier: Apache-2.0
#include "tests/server/batching/simulation/simulated_threading.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/check.h"

namespace attendant {
namespace {

// A turn takes up to so long, so that two events are rarely at the same moment.
constexpr int64_t kMaxTurnNs = 200;

// Stacks are mapped once for all simulations.
std::vector<std::unique_ptr<Fiber>>& FreeFibers() {
  static std::vector<std::unique_ptr<Fiber>> fibers;
  return fibers;
}

std::unique_ptr<Fiber> TakeFiber() {
  std::vector<std::unique_ptr<Fiber>>& free = FreeFibers();
  if (free.empty()) return std::make_unique<Fiber>();
  std::unique_ptr<Fiber> fiber = std::move(free.back());
  free.pop_back();
  return fiber;
}

}  // namespace

struct SimulatedThreading::Task {
  std::string name;
  absl::AnyInvocable<void()> body;
  std::unique_ptr<Fiber> fiber = TakeFiber();
  absl::Time until = absl::InfinitePast();  // it waits for this moment, or for a signal
  const void* on = nullptr;                 // whose signal
  bool ended = false;

  bool Runnable(absl::Time now) const { return !ended && until <= now; }
};

class SimulatedThreading::SimulatedCondition final : public Condition {
 public:
  explicit SimulatedCondition(SimulatedThreading& threading) : threading_(threading) {}
  void Signal() override { threading_.Wake(this, /*all=*/false); }
  void SignalAll() override { threading_.Wake(this, /*all=*/true); }
  void WaitUntil(absl::Mutex& mutex, absl::Time deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    mutex.Unlock();
    threading_.Wait(deadline, this);
    mutex.Lock();
  }

 private:
  SimulatedThreading& threading_;
};

class SimulatedThreading::Handle final : public Thread {
 public:
  Handle(SimulatedThreading& threading, Task& task) : threading_(threading), task_(task) {}
  ~Handle() override {
    while (!task_.ended) threading_.Wait(absl::InfiniteFuture(), &task_);
  }

 private:
  SimulatedThreading& threading_;
  Task& task_;
};

SimulatedThreading::SimulatedThreading(const Options& options)
    : options_(options), random_(options.seed), now_(absl::UnixEpoch() + absl::Seconds(1000)) {}

SimulatedThreading::~SimulatedThreading() {
  for (const std::unique_ptr<Task>& task : tasks_) FreeFibers().push_back(std::move(task->fiber));
}

int64_t SimulatedThreading::Random(int64_t below) {
  return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
}

std::unique_ptr<Threading::Condition> SimulatedThreading::MakeCondition() {
  return std::make_unique<SimulatedCondition>(*this);
}

std::unique_ptr<Threading::Thread> SimulatedThreading::Start(const std::string& name,
                                                             absl::AnyInvocable<void()> body) {
  Task& task = *tasks_.emplace_back(std::make_unique<Task>());
  task.name = name;
  task.body = [this, &task, run = std::move(body)]() mutable {
    run();
    run = nullptr;
    task.ended = true;
    Wake(&task, /*all=*/true);
  };
  task.fiber->Restart([](void* argument) { static_cast<Task*>(argument)->body(); }, &task);
  return std::make_unique<Handle>(*this, task);
}

SimulatedThreading::Task& SimulatedThreading::Current() {
  ATTENDANT_CHECK(current_ != nullptr);
  return *current_;
}

void SimulatedThreading::Wait(absl::Time until, const void* on) {
  Task& task = Current();
  task.until = until;
  task.on = on;
  task.fiber->Yield();
}

void SimulatedThreading::Wake(const void* on, bool all) {
  std::vector<Task*> waiting;
  for (const std::unique_ptr<Task>& task : tasks_) {
    if (!task->ended && task->on == on && !task->Runnable(now_)) waiting.push_back(task.get());
  }
  if (waiting.empty()) return;
  if (!all) waiting = {waiting[static_cast<size_t>(Random(std::ssize(waiting)))]};
  for (Task* task : waiting) {
    task->until = absl::InfinitePast();
    task->on = nullptr;
  }
}

void SimulatedThreading::Sleep(absl::Duration duration) { Wait(now_ + duration, nullptr); }

void SimulatedThreading::GiveWay() {
  if (OneIn(2)) Wait(now_, nullptr);
}

// The thread whose turn it is, at a moment to which the clock moves if need be; null if all have
// ended, or none will ever go on.
SimulatedThreading::Task* SimulatedThreading::Choose() {
  std::vector<Task*> runnable;
  std::vector<Task*> waiting;
  absl::Time next = absl::InfiniteFuture();
  for (const std::unique_ptr<Task>& task : tasks_) {
    if (task->ended) continue;
    (task->Runnable(now_) ? runnable : waiting).push_back(task.get());
    next = std::min(next, task->until);
  }
  if (runnable.empty() && next < absl::InfiniteFuture()) {
    if (idle_) idle_();
    now_ = std::max(now_, next);
    for (Task* task : waiting) {
      if (task->Runnable(now_)) runnable.push_back(task);
    }
  }
  if (runnable.empty()) return nullptr;
  if (options_.early_wakes && !waiting.empty() && OneIn(20)) {
    Task* const woken = waiting[static_cast<size_t>(Random(std::ssize(waiting)))];
    if (woken->on != nullptr) return woken;
  }
  return runnable[static_cast<size_t>(Random(std::ssize(runnable)))];
}

std::string SimulatedThreading::Run(absl::AnyInvocable<void()> body) {
  const std::unique_ptr<Task>& first = tasks_.emplace_back(std::make_unique<Task>());
  Task& main = *first;
  main.name = "main";
  main.body = [&main, run = std::move(body)]() mutable {
    run();
    main.ended = true;
  };
  main.fiber->Restart([](void* argument) { static_cast<Task*>(argument)->body(); }, &main);
  while (Task* task = Choose()) {
    current_ = task;
    task->until = absl::InfinitePast();
    task->on = nullptr;
    task->fiber->Resume();
    current_ = nullptr;
    now_ += absl::Nanoseconds(Random(kMaxTurnNs));
  }
  std::string stuck;
  for (const std::unique_ptr<Task>& task : tasks_) {
    if (!task->ended) absl::StrAppend(&stuck, stuck.empty() ? "" : ", ", task->name);
  }
  return stuck;
}

}  // namespace attendant
