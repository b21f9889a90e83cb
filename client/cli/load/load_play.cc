// SPDX-License-Identifier: Apache-2.0
#include "client/cli/load/load_play.h"

#include <csignal>
#include <memory>

#include "client/cli/load/confidence_watch.h"
#include "client/cli/load/cost_meter.h"
#include "client/cli/load/live_view.h"
#include "client/load/results/request_log.h"

namespace attendant::client {
namespace {

volatile std::sig_atomic_t ctrl_c = 0;
struct sigaction action_before {};

}  // namespace

CatchInterrupt::CatchInterrupt() {
  ctrl_c = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { ctrl_c = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &action_before);
}

CatchInterrupt::~CatchInterrupt() { sigaction(SIGINT, &action_before, nullptr); }

bool CatchInterrupt::interrupted() { return ctrl_c != 0; }

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
                          .payload = setup.DescribePayload(target.sends_words),
                          .plan = plan},
          .start = origin + plan.warmup,
          .summary = recorder.Summarize(clock.Now()),
          .detail = recorder.Detail(),
          .cost = meter.Cost(clock.Now())};
}

}  // namespace attendant::client
