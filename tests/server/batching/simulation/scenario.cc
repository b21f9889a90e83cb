// SPDX-License-Identifier: Apache-2.0
#include "tests/server/batching/simulation/scenario.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/batching/runners/batch_runner.h"
#include "tests/server/batching/simulation/scenario_parts.h"

namespace attendant {

Scenario::Scenario(uint64_t seed)
    : threading_({.seed = seed, .early_wakes = seed % 2 == 1}),
      tasks_came_(threading_.MakeCondition()) {
  for (int64_t i = 0; i < kMaxWorkers; ++i) {
    slots_.push_back(std::make_shared<ComputeSlot>(threading_));
  }
}

Scenario::~Scenario() = default;

std::string Scenario::Run() {
  threading_.OnIdle([this] { CheckIdle(); });
  const std::string stuck = threading_.Run([this] { Main(); });
  if (!stuck.empty()) Fail("these wait for ever: ", stuck);
  if (failure_.empty()) CheckEnd();
  return failure_;
}

BatcherOptions Scenario::ChooseOptions(int64_t workers) {
  const auto random = [this](int64_t low, int64_t high) {
    return low + threading_.Random(high - low + 1);
  };
  BatcherOptions options{.max_batch_tokens = random(4, 24),
                         .max_batch_sequences = random(1, 6),
                         .max_queued_tokens = 0,
                         .max_queued_requests = random(2, 12),
                         .max_queue_delay = absl::ZeroDuration()};
  options.max_queued_tokens = options.max_batch_tokens * random(1, 10);
  if (threading_.OneIn(3)) options.max_queue_delay = absl::Microseconds(random(1, 2000));
  if (threading_.OneIn(2)) options.max_priority = 1;
  if (threading_.OneIn(2)) options.max_priority_wait = absl::Microseconds(random(0, 3000));
  if (threading_.OneIn(2)) options.stall_timeout = absl::Microseconds(random(500, 3000));
  if (threading_.OneIn(2)) options.cost = FittedCost();
  if (threading_.OneIn(2)) {
    options.slots.assign(slots_.begin(), slots_.begin() + workers);
    options.weight = static_cast<double>(random(1, 3));
    ++events_["shared processors"];
  }
  return options;
}

void Scenario::StartBatcher() {
  const int64_t workers = 1 + threading_.Random(kMaxWorkers);
  auto life = std::make_shared<Life>(ChooseOptions(workers));
  std::vector<std::unique_ptr<Runner>> runners;
  life->workers = workers;
  for (size_t i = 0; i < static_cast<size_t>(workers); ++i) {
    runners.push_back(std::make_unique<BatchRunner>(std::make_unique<Worker>(*this, *life, i)));
  }
  life->observer = std::make_unique<Observer>();
  const auto executor = [this](absl::AnyInvocable<void()> task) {
    {
      absl::MutexLock lock(&tasks_mutex_);
      tasks_.push_back({threading_.Now(), std::move(task)});
      tasks_came_->Signal();
    }
    threading_.GiveWay();
  };
  life->batcher = std::make_unique<Batcher>(life->options, std::move(runners), *life->observer,
                                            executor, threading_);
  Life* const raw = life.get();
  raw->batcher->SetLostListener([raw](const absl::Status&) { ++raw->told_lost; });
  raw->batcher->SetStallListener([raw](int stalled) { raw->told_stalled = stalled; });
  lives_.push_back(life);
  Trace("batcher ", lives_.size(), " with ", workers, " workers");
}

// Drains and destroys it, as its registry does.
void Scenario::StopBatcher(Life& life) {
  life.stopping = true;
  if (!threading_.OneIn(4)) {
    const absl::Duration grace = absl::Microseconds(threading_.Random(8000));
    const absl::Time deadline = life.drain_deadline = threading_.Now() + grace;
    life.drain_began = threading_.Now();
    ++events_["drain"];
    life.batcher->Drain(deadline);
    life.drained = threading_.Now();
    Trace("drained");
    if (life.drained > deadline + kSlack) Fail("a drain took longer than its deadline");
    if (life.drained >= deadline) ++events_["drain cut short"];
  }
  while (life.calls > 0) threading_.Sleep(absl::Microseconds(1));
  life.batcher.reset();
  Trace("destroyed");
}

void Scenario::Main() {
  StartBatcher();
  std::vector<std::unique_ptr<Threading::Thread>> executors;
  for (size_t i = 0; i < 2; ++i) {
    executors.push_back(threading_.Start(absl::StrCat("executor ", i), [this] { RunExecutor(); }));
  }
  std::vector<std::unique_ptr<Threading::Thread>> clients;
  clients_left_ = 2 + threading_.Random(4);
  for (int64_t i = 0; i < clients_left_; ++i) {
    clients.push_back(threading_.Start(absl::StrCat("client ", i), [this] { BeClient(); }));
  }
  Operate();
  clients.clear();
  StopBatcher(*lives_.back());
  {
    absl::MutexLock lock(&tasks_mutex_);
    stopping_ = true;
    tasks_came_->SignalAll();
  }
  executors.clear();
}

void Scenario::Operate() {
  for (int64_t reloads = threading_.Random(3); reloads > 0; --reloads) {
    threading_.Sleep(absl::Microseconds(threading_.Random(10'000)));
    const std::shared_ptr<Life> old = lives_.back();
    StartBatcher();
    ++events_["reload"];
    StopBatcher(*old);
  }
  // Some stop while their clients still submit.
  const bool early = threading_.OneIn(2);
  while (clients_left_ > 0 && !(early && threading_.OneIn(20))) {
    threading_.Sleep(absl::Microseconds(500));
  }
}

void Scenario::RunExecutor() {
  while (true) {
    Task task;
    {
      absl::MutexLock lock(&tasks_mutex_);
      while (tasks_.empty() && !stopping_) {
        tasks_came_->WaitUntil(tasks_mutex_, absl::InfiniteFuture());
      }
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.erase(tasks_.begin());
    }
    posted_ = task.posted;
    task.run();
    task.run = nullptr;
    if (threading_.OneIn(4)) threading_.Sleep(absl::Microseconds(threading_.Random(50)));
  }
}

void Scenario::BeClient() {
  for (int64_t left = 5 + threading_.Random(20); left > 0; --left) {
    if (!threading_.OneIn(3)) threading_.Sleep(absl::Microseconds(threading_.Random(800)));
    SubmitOne();
  }
  --clients_left_;
}

void Scenario::ChooseDeadline(Request& request, WorkRequest& pending) {
  if (!threading_.OneIn(3)) return;
  // Some deadlines pass just as a worker looks for its next batch.
  const absl::Duration to_end = request.life->batch_end - threading_.Now();
  const bool at_end = to_end > absl::ZeroDuration() && threading_.OneIn(2);
  const absl::Duration left = at_end ? to_end : absl::Microseconds(threading_.Random(3000) - 100);
  request.deadline = pending.deadline = threading_.Now() + left;
}

WorkRequest Scenario::MakeRequest(const std::shared_ptr<Request>& request) {
  WorkRequest pending;
  const int64_t longest = request->life->options.max_batch_tokens;
  for (int64_t i = threading_.Random(5); i >= 0; --i) {
    const bool too_long = threading_.OneIn(100);
    const auto len = static_cast<size_t>(too_long ? longest + 1 : 1 + threading_.Random(longest));
    SequenceInput& sequence = pending.encode().sequences.emplace_back();
    sequence.token_ids.assign(len, TokenOf(request->index, request->lens.size()));
    sequence.positions.assign(len, 0);
    sequence.segment_ids.assign(len, 0);
    request->lens.push_back(static_cast<int64_t>(len));
  }
  request->runs.resize(request->lens.size());
  pending.encode().outputs.pooling = Pooling::kMean;
  pending.priority = static_cast<int>(threading_.Random(4)) - 1;
  pending.client = request->client = static_cast<uint64_t>(threading_.Random(3));
  ChooseDeadline(*request, pending);
  pending.done = [this, request, memory = *budget_.Acquire(request->tokens())](
                     const absl::StatusOr<FinishedWork>& finished) {
    CheckAnswer(*request, finished);
  };
  return pending;
}

void Scenario::SubmitOne() {
  const std::shared_ptr<Life> life = lives_.back();
  if (life->batcher == nullptr) return;
  const auto request = std::make_shared<Request>(static_cast<int64_t>(requests_.size()), life);
  requests_.push_back(request);
  WorkRequest pending = MakeRequest(request);
  request->arrival = threading_.Now();
  request->queue_was_full = request->finds_queue_full();
  request->client_was_full = request->client_may_be_full(requests_);
  ++life->calls;
  request->id = life->batcher->Submit(std::move(pending));
  --life->calls;
  CheckAdmission(*request);
  Trace("request ", request->index, " of ", request->tokens(), " tokens is ", request->id);
  if (threading_.OneIn(4)) CancelLater(request);
}

void Scenario::CancelLater(const std::shared_ptr<Request>& request) {
  if (threading_.OneIn(2)) threading_.Sleep(absl::Microseconds(threading_.Random(1500)));
  const std::shared_ptr<Life> life = request->life;
  if (life->batcher == nullptr) return;
  for (int64_t times = 1 + threading_.Random(2); times > 0; --times) {
    ++life->calls;
    request->cancelled = std::min(request->cancelled, threading_.Now());
    if (life->batcher != nullptr) life->batcher->Cancel(request->id);
    --life->calls;
  }
  ++events_["cancel"];
}

}  // namespace attendant
