// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "server/threads/threading.h"
#include "tests/support/fiber/fiber.h"

namespace attendant {

// Threads that one thread of the system runs in turns, under a clock that moves only when all of
// them wait. A seed decides who is next, whom a signal wakes, and how long each turn takes: the
// same seed gives the same run. A thread keeps its turn until it waits, sleeps or calls GiveWay; it
// must hold no lock then.
class SimulatedThreading final : public Threading {
 public:
  struct Options {
    uint64_t seed = 0;
    bool early_wakes = false;  // conditions may wake waiters that nobody signalled
  };
  explicit SimulatedThreading(const Options& options);
  ~SimulatedThreading() override;

  // Runs `body` as the first thread, and all that are started, until all have ended. Returns what
  // they wait for if that never comes, else nothing.
  std::string Run(absl::AnyInvocable<void()> body);

  // For the threads.
  void Sleep(absl::Duration duration);
  void GiveWay();  // perhaps others go on first
  // From 0 to below - 1, all equally likely.
  int64_t Random(int64_t below);
  bool OneIn(int64_t n) { return Random(n) == 0; }

  absl::Time Now() override { return now_; }
  std::unique_ptr<Condition> MakeCondition() override;
  std::unique_ptr<Thread> Start(const std::string& name, absl::AnyInvocable<void()> body) override;

  // Called whenever all threads wait, before the clock moves.
  void OnIdle(std::function<void()> idle) { idle_ = std::move(idle); }

 private:
  class SimulatedCondition;
  class Handle;
  struct Task;  // one thread

  Task& Current();
  void Wait(absl::Time until, const void* on);
  void Wake(const void* on, bool all);
  Task* Choose();

  const Options options_;
  std::mt19937_64 random_;
  absl::Time now_;
  std::function<void()> idle_;
  std::vector<std::unique_ptr<Task>> tasks_;
  Task* current_ = nullptr;
};

}  // namespace attendant
