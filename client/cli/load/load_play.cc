// SPDX-License-Identifier: Apache-2.0
#include "client/cli/load/load_play.h"

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <memory>

#include "client/cli/load/confidence_watch.h"
#include "client/cli/load/cost_meter.h"
#include "client/cli/load/live_view.h"
#include "client/load/results/request_log.h"

namespace attendant::client {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
constexpr int64_t kRepeatMs = 500;

std::atomic<int64_t> interrupted_ms = 0;  // by the clock of the system's start; 0: not yet
struct sigaction actions_before[std::size(kSignals)];

void OnSignal(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ms = int64_t{1000} * now.tv_sec + now.tv_nsec / 1'000'000;
  int64_t before_ms = 0;
  if (interrupted_ms.compare_exchange_strong(before_ms, now_ms)) return;
  if (now_ms - before_ms < kRepeatMs) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

CatchInterrupt::CatchInterrupt() {
  interrupted_ms = 0;
  struct sigaction action {};
  action.sa_handler = OnSignal;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &action, &actions_before[i]);
  }
}

CatchInterrupt::~CatchInterrupt() {
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &actions_before[i], nullptr);
  }
}

bool CatchInterrupt::interrupted() { return interrupted_ms != 0; }

LoadResult PlayLoad(const LoadSetup& setup, const LoadPlan& plan, const Target& target,
                    std::ostream* jsonl, Io& io) {
  SteadyClock clock;
  const absl::Time origin = absl::Now();
  const CostMeter meter;
  std::unique_ptr<RequestLog> log;
  if (jsonl != nullptr) log = std::make_unique<RequestLog>(*jsonl, origin, plan.warmup);
  const auto observe = [&log](const CallTimes& times, const CallResult& result) {
    log->Add(times, result);
  };
  Recorder recorder(plan.warmup, plan.end(), log != nullptr ? observe : Recorder::Observer());
  Driver driver(plan, *target.caller, clock, recorder);
  LiveView view(plan, io, setup.live || io.err_is_terminal);
  ConfidenceWatch watch(recorder, clock, plan.warmup, setup.confidence_percent);
  driver.Run([&] {
    view.Update(clock.Now(), recorder, driver.outstanding());
    if (log != nullptr) log->Flush();
    if (CatchInterrupt::interrupted()) return Course::kInterrupt;
    return watch.reached() ? Course::kFinish : Course::kGoOn;
  });
  view.Clear();
  if (log != nullptr) log->Flush();
  return {.description = {.protocol = setup.protocol_title(),
                          .server = setup.common.connect.target,
                          .model = target.model,
                          .model_version = setup.model_version(),
                          .payload = setup.DescribePayload(target.sends_words),
                          .plan = plan},
          .start = origin + plan.warmup,
          .summary = recorder.Summarize(clock.Now()),
          .detail = recorder.Detail(),
          .cost = meter.Cost(clock.Now())};
}

}  // namespace attendant::client
