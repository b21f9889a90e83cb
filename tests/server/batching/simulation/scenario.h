// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/batching/batcher.h"
#include "server/requests/memory/byte_budget.h"
#include "tests/server/batching/simulation/simulated_threading.h"

namespace attendant {

// Counts of events in simulations, to show that they took every way.
using Events = std::map<std::string, int64_t>;

// Clients that submit and cancel, workers whose batches take time and fail, a device that is lost,
// a clock that is set, and an operator who replaces the batcher under load (the old one drains
// while the new one takes requests) and stops it: all that a seed chooses. Watches what must hold
// whatever the seed is.
class Scenario {
 public:
  explicit Scenario(uint64_t seed);
  ~Scenario();

  // Empty, or what went wrong first.
  std::string Run();

  const Events& events() const { return events_; }
  // What happened, in order: the same for the same seed.
  const std::string& trace() const { return trace_; }

 private:
  struct Life;     // of one batcher
  struct Request;  // as its client knows it
  class Worker;    // a Session
  class Observer;

  template <typename... Parts>
  void Fail(const Parts&... parts);
  template <typename... Parts>
  void Trace(const Parts&... parts);

  BatcherOptions ChooseOptions(int64_t workers);
  void StartBatcher();
  void StopBatcher(Life& life);

  void Main();
  void Operate();
  void BeClient();
  WorkRequest MakeRequest(const std::shared_ptr<Request>& request);
  void ChooseDeadline(Request& request, WorkRequest& pending);
  void SubmitOne();
  void CancelLater(const std::shared_ptr<Request>& request);
  void RunExecutor();

  void CheckAdmission(const Request& request);
  void CheckAnswer(Request& request, const absl::StatusOr<FinishedWork>& finished);
  void CheckResults(const Request& request, const FinishedWork& finished);
  void CheckError(const Request& request, const absl::Status& status);
  void CheckIdle();
  void CheckEnd();

  struct Task {
    absl::Time posted;
    absl::AnyInvocable<void()> run;
  };

  SimulatedThreading threading_;
  Events events_;
  std::string trace_;
  std::string failure_;

  static constexpr int64_t kBudget = 1 << 20;
  ByteBudget budget_{{.what = "requests", .flag = "none", .limit = kBudget}};
  static constexpr int64_t kMaxWorkers = 3;
  std::vector<std::shared_ptr<ComputeSlot>> slots_;  // [kMaxWorkers], of the batchers that share
  std::array<bool, kMaxWorkers> computing_{};        // a batch on the slot
  std::vector<std::shared_ptr<Life>> lives_;         // the last one takes requests
  std::vector<std::shared_ptr<Request>> requests_;
  std::vector<Task> tasks_;  // of the executor
  std::unique_ptr<Threading::Condition> tasks_came_;
  absl::Mutex tasks_mutex_;
  absl::Time posted_;  // when the batcher handed over the completion that runs
  int64_t clients_left_ = 0;
  bool stopping_ = false;  // the executor, once the batchers are gone
};

}  // namespace attendant
