// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/load/load_outputs.h"
#include "client/cli/load/load_play.h"
#include "client/cli/load/load_report.h"
#include "client/cli/load/load_setup.h"
#include "client/load/results/rate_search.h"
#include "client/load/results/report_json.h"

namespace attendant::client {
namespace {

class LoadCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override { setup_.AddTo(flags); }

  int Run(std::span<const std::string> arguments, Io& io) override {
    if (!arguments.empty()) return UsageError("load takes flags only", io);
    absl::Status status = setup_.Prepare();
    if (!status.ok()) return UsageError(status.message(), io);
    status = outputs_.Open(setup_.html_file, setup_.hlog_file, setup_.jsonl_file);
    if (!status.ok()) return UsageError(status.message(), io);
    absl::StatusOr<Target> target = setup_.MakeTarget();
    if (!target.ok()) return CallError(target.status(), setup_.common.connect, io);
    target_ = *std::move(target);
    jsonl_ = outputs_.StartJsonl();
    const CatchInterrupt catch_interrupt;
    const int exit_code = setup_.find_max              ? FindMax(io)
                          : setup_.sweep_rates.empty() ? PlayOne(io)
                                                       : Sweep(io);
    status = outputs_.Write(results_, summary_);
    return status.ok() ? exit_code : UsageError(status.message(), io);
  }

 private:
  const LoadResult& Play(const LoadPlan& plan, Io& io) {
    results_.push_back(PlayLoad(setup_, plan, target_, jsonl_, io));
    return results_.back();
  }

  int PlayOne(Io& io) {
    const LoadResult& result = Play(setup_.plan, io);
    if (setup_.common.json) {
      io.out << Dump(ReportToJson(result)) << "\n";
    } else {
      io.out << FormatReport(result);
    }
    const int exit_code = ExitCode(io);
    return exit_code == kExitOk ? Judge(result, io) : exit_code;
  }

  // A load at one rate, with a line of the table.
  const LoadResult& PlayRate(double rate, Io& io) {
    LoadPlan plan = setup_.plan;
    plan.requests_per_s = rate;
    if (results_.empty() && !setup_.common.json) io.out << SweepHeading();
    const LoadResult& result = Play(plan, io);
    if (!setup_.common.json) io.out << SweepLine(result) << std::flush;
    return result;
  }

  int Sweep(Io& io) {
    for (double rate : setup_.sweep_rates) {
      PlayRate(rate, io);
      if (CatchInterrupt::interrupted()) break;
    }
    if (!setup_.common.json) io.out << SweepWarnings(results_);
    WriteRuns({}, io);
    return ExitCode(io);
  }

  int FindMax(Io& io) {
    RateSearch search(setup_.plan.requests_per_s);
    std::string client_limit;
    while (!search.done() && client_limit.empty()) {
      const LoadResult& result = PlayRate(search.rate(), io);
      if (CatchInterrupt::interrupted()) break;  // what was not measured whole is no verdict
      const bool kept = KeepsObjectives(result);
      // A rate missed because of the client says nothing about the server. A kept rate always does.
      if (!kept) client_limit = ClientBottleneck(result);
      if (client_limit.empty()) search.Report(kept);
    }
    nlohmann::ordered_json found{{"max_rate", search.best()}, {"complete", search.done()}};
    for (const Condition& objective : setup_.objectives) found["slo"].push_back(objective.text());
    found["client_limit"] = client_limit;
    summary_ = DescribeSearch(search, client_limit);
    if (!setup_.common.json) io.out << "\n" << summary_ << "\n";
    WriteRuns({{"find_max", found}}, io);
    if (!client_limit.empty() || IsUnknown(search)) return kExitNoVerdict;
    const int exit_code = ExitCodeOf(results_.back().summary);
    if (search.best() > 0) return kExitOk;
    return exit_code == kExitOk ? kExitThreshold : exit_code;
  }

  // Ctrl-C came before the first rate was measured whole.
  static bool IsUnknown(const RateSearch& search) {
    return search.best() == 0 && search.missed() == 0;
  }

  std::string DescribeSearch(const RateSearch& search, const std::string& client_limit) const {
    std::string slo;
    for (const Condition& objective : setup_.objectives)
      absl::StrAppend(&slo, " ", objective.text());
    if (!client_limit.empty()) {
      return absl::StrCat("No verdict: ", client_limit, ". The highest rate that kept", slo, " is ",
                          FormatRate(search.best()), " requests/s.");
    }
    if (IsUnknown(search)) return "No verdict: no rate was measured whole.";
    if (search.best() == 0) {
      return absl::StrCat("No rate down to ", FormatRate(search.missed()), " requests/s kept", slo,
                          ".");
    }
    return absl::StrCat("The highest rate that kept", slo, " is ", FormatRate(search.best()),
                        " requests/s", search.done() ? "." : ", so far.");
  }

  // Every objective, as long as one likes; and no errors, unless an objective allows them.
  bool KeepsObjectives(const LoadResult& result) const {
    bool bounds_errors = false;
    for (const Condition& objective : setup_.objectives) {
      if (!objective.Holds(result)) return false;
      bounds_errors = bounds_errors || objective.bounds_errors();
    }
    if (FallsBehind(result)) return false;
    const LoadSummary& summary = result.summary;
    return bounds_errors || summary.failed + summary.not_sent == 0;
  }

  void WriteRuns(nlohmann::ordered_json json, Io& io) const {
    if (!setup_.common.json) return;
    json["runs"] = nlohmann::ordered_json::array();
    for (const LoadResult& result : results_) json["runs"].push_back(ReportToJson(result));
    io.out << Dump(json) << "\n";
  }

  // --fail_if. No verdict when the client was the bottleneck, nor without the requests that ran
  // when the load was interrupted: they were the slowest.
  int Judge(const LoadResult& result, Io& io) const {
    if (setup_.failures.empty()) return kExitOk;
    if (result.summary.interrupted) {
      io.err << "attendant: no verdict, the load was interrupted\n";
      return kExitNoVerdict;
    }
    const std::string bottleneck = ClientBottleneck(result);
    if (!bottleneck.empty()) {
      io.err << "attendant: no verdict, the client was the bottleneck: " << bottleneck << "\n";
      return kExitNoVerdict;
    }
    int exit_code = kExitOk;
    for (const Condition& failure : setup_.failures) {
      if (failure.IsKnown(result) && !failure.Holds(result)) continue;
      io.err << "attendant: --fail_if " << failure.text() << ": " << failure.Describe(result)
             << "\n";
      exit_code = kExitThreshold;
    }
    return exit_code;
  }

  // The last one with an answer: Ctrl-C may end another before there is any.
  const LoadResult& LastAnswered() const {
    const auto found = std::find_if(
        results_.rbegin(), results_.rend(),
        [](const LoadResult& result) { return result.summary.ok + result.summary.failed > 0; });
    return found == results_.rend() ? results_.back() : *found;
  }

  int ExitCode(Io& io) const {
    const LoadResult& result = LastAnswered();
    const LoadSummary& summary = result.summary;
    if (summary.ok > 0) return kExitOk;
    const bool warm_up = result.description.plan.warmup > absl::ZeroDuration();
    io.err << "attendant: no request succeeded" << (warm_up ? " after the warm-up" : "") << "\n";
    return summary.failed == 0 ? kExitNoAnswer : ExitCodeOf(summary);
  }

  // One request without error is a measurement.
  static int ExitCodeOf(const LoadSummary& summary) {
    if (summary.ok > 0 || summary.failed == 0) return kExitOk;
    const bool unreachable =
        summary.errors.size() == 1 && (summary.errors.begin()->first == "UNAVAILABLE" ||
                                       summary.errors.begin()->first == "DEADLINE_EXCEEDED");
    return unreachable ? kExitNoAnswer : kExitServerError;
  }

  LoadSetup setup_;
  LoadOutputs outputs_;
  std::ostream* jsonl_ = nullptr;
  Target target_;
  std::vector<LoadResult> results_;
  std::string summary_;  // of a search
};

}  // namespace

CommandInfo LoadCommandInfo() {
  return {
      .name = "load",
      .summary = "Sends many requests and measures throughput and latency",
      .arguments = "",
      .details =
          "Response time runs from the time at which a request should have been sent, so a stall "
          "of the server\ncounts for every request that it delays; service time runs from the "
          "time at which it was sent.\nCtrl-C and SIGTERM end the load early, and it still "
          "reports. The exit code is 0 if at least one\nrequest succeeded, 5 if a --fail_if "
          "condition is true or no rate keeps the --slo, 6 without a verdict\nbecause the client "
          "was the bottleneck or the load was interrupted.\n\n"
          "  attendant load --concurrency 16 --lengths fixed:128\n"
          "  attendant load --rate 200 --texts texts.txt --duration 1m --html report.html\n"
          "  attendant load --rate 200 --fail_if 'p99>50ms' --fail_if 'error_rate>0.1%'\n"
          "  attendant load --find_max --slo p99=50ms --html report.html\n"
          "  attendant load --replay access.log --speed 2\n"
          "  attendant load --protocol kserve --model NAME.ids --server triton:8001\n"
          "  attendant load --protocol kserve_http --model NAME --server triton:8000\n",
      .make = []() -> std::unique_ptr<Command> { return std::make_unique<LoadCommand>(); }};
}

}  // namespace attendant::client
