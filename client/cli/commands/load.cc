// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/commands/load_report.h"
#include "client/cli/format.h"
#include "client/load/driver.h"
#include "client/load/protocols.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(250);

volatile std::sig_atomic_t interrupted = 0;

// The first Ctrl-C ends the load early; a second one ends the program.
class CatchInterrupt {
 public:
  CatchInterrupt() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_);
  }
  ~CatchInterrupt() { sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

enum class Protocol { kAttendant, kKserve };

class LoadCommand : public Command {
 public:
  void AddFlags(FlagParser& flags) override {
    flags.AddChoice<Protocol>(
        "protocol", &protocol_,
        {{"attendant", Protocol::kAttendant}, {"kserve", Protocol::kKserve}},
        "The service to call: attendant.v1, or KServe v2, which Triton speaks too");
    flags.Add("model", &target_.model, "NAME", "The model; kserve always needs it");
    AddPlanFlags(flags);
    AddPayloadFlags(flags);
    common_.AddTo(flags);
  }

  int Run(std::span<const std::string> arguments, Io& io) override {
    if (!arguments.empty()) return UsageError("load takes flags only", io);
    absl::Status status = Prepare();
    if (!status.ok()) return UsageError(status.message(), io);
    absl::StatusOr<Target> target = protocol_ == Protocol::kAttendant ? MakeAttendantTarget(target_)
                                                                      : MakeKserveTarget(target_);
    if (!target.ok()) return CallError(target.status(), common_.connect, io);
    const LoadSummary summary = Play(*target->caller, io);
    Write(target->model, summary, io);
    return ExitCodeOf(summary);
  }

 private:
  void AddPlanFlags(FlagParser& flags) {
    flags.Section("Plan");
    flags.AddNumber("connections", &plan_.connections, "N", {1}, "TCP connections");
    flags.AddNumber("concurrency", &concurrency_, "N", {1},
                    "Closed loop: requests outstanding on each connection");
    flags.AddNumber("rate", &plan_.requests_per_s, "R", {0},
                    "Open loop: R requests per second, at the random times of a Poisson process; 0 "
                    "is a closed loop");
    flags.AddNumber("max_outstanding", &max_outstanding_, "N", {1},
                    "Open loop: a request that finds N others outstanding is counted, not sent");
    flags.Add("duration", &duration_, "DURATION",
              "How long to measure; 0 is 10s, or no limit when --requests is given");
    flags.Add("warmup", &plan_.warmup, "DURATION", "How long to run before measuring");
    flags.AddNumber("requests", &plan_.max_requests, "N", {0},
                    "Measure this many requests; 0 is no limit");
    flags.Add("seed", &plan_.seed, "N", "Seed of all random choices");
  }

  void AddPayloadFlags(FlagParser& flags) {
    flags.Section("Requests");
    flags.Add("texts", &texts_file_, "FILE",
              "Send the lines of FILE, shuffled, again and again; without it, random token ids");
    flags.Add("lengths", &lengths_, "SPEC",
              "Lengths of random sequences: fixed:N, uniform:LOW:HIGH, "
              "lognormal:MEDIAN:SIGMA:LOW:HIGH, or mixed, which is lognormal:48:0.54:4:512; a "
              "KServe model that takes text gets words");
    flags.AddNumber("batch", &target_.payload.batch, "N", {1}, "Sequences in each request");
    flags.AddChoice<bool>("output", &target_.hidden, {{"pooled", false}, {"hidden", true}},
                          "attendant: ask for embeddings, or for hidden states");
    flags.AddNumber("vocab", &target_.payload.vocab, "N", {1},
                    "Random token ids are below N, and below the model's vocabulary");
    flags.AddRepeated("shape", &target_.shapes, "INPUT:N,N",
                      "kserve: the -1 dimensions of an input, without the batch; may be given many "
                      "times");
  }

  absl::Status Prepare() {
    const bool open = plan_.requests_per_s > 0;
    if (plan_.warmup < absl::ZeroDuration() || duration_ < absl::ZeroDuration()) {
      return absl::FailedPreconditionError("--warmup and --duration cannot be negative");
    }
    plan_.max_outstanding = open ? max_outstanding_ : plan_.connections * concurrency_;
    plan_.duration = duration_ > absl::ZeroDuration() ? duration_
                     : plan_.max_requests > 0         ? absl::InfiniteDuration()
                                                      : absl::Seconds(10);
    ATTENDANT_ASSIGN_OR_RETURN(LengthDistribution lengths, LengthDistribution::Parse(lengths_));
    target_.payload.lengths = lengths;
    if (!texts_file_.empty()) {
      ATTENDANT_ASSIGN_OR_RETURN(target_.payload.texts, ReadTexts(texts_file_));
    }
    target_.payload.seed = plan_.seed;
    target_.connect = common_.connect;
    target_.connections = plan_.connections;
    return absl::OkStatus();
  }

  LoadSummary Play(Caller& caller, Io& io) const {
    const CatchInterrupt catch_interrupt;
    SteadyClock clock;
    Recorder recorder(plan_.warmup, plan_.end());
    Driver driver(plan_, caller, clock, recorder);
    absl::Duration next_progress = absl::ZeroDuration();
    driver.Run([&] {
      const absl::Duration now = clock.Now();
      if (io.err_is_terminal && now >= next_progress) {
        io.err << "\r" << FormatProgress(plan_, recorder.Summarize(now), now) << "\x1b[K"
               << std::flush;
        next_progress = now + kProgressInterval;
      }
      return interrupted == 0;
    });
    if (io.err_is_terminal) io.err << "\r\x1b[K" << std::flush;
    return recorder.Summarize(clock.Now());
  }

  void Write(const std::string& model, const LoadSummary& summary, Io& io) const {
    const std::string what =
        texts_file_.empty() ? absl::StrCat("random ids, lengths ", lengths_)
                            : absl::StrCat(target_.payload.texts.size(), " texts of ", texts_file_);
    const LoadDescription description{
        .protocol = protocol_ == Protocol::kAttendant ? "attendant.v1" : "KServe v2",
        .server = common_.connect.target,
        .model = model,
        .payload = absl::StrCat(target_.payload.batch,
                                target_.payload.batch == 1 ? " sequence" : " sequences",
                                " per request, ", what, ", asking for ",
                                protocol_ == Protocol::kKserve ? "all outputs"
                                : target_.hidden               ? "hidden states"
                                                               : "embeddings"),
        .plan = plan_};
    if (common_.json) {
      io.out << Dump(ReportToJson(description, summary)) << "\n";
    } else {
      io.out << FormatReport(description, summary);
    }
  }

  // One request without error is a measurement.
  static int ExitCodeOf(const LoadSummary& summary) {
    if (summary.ok > 0 || summary.failed == 0) return kExitOk;
    const bool unreachable =
        summary.errors.size() == 1 && (summary.errors.begin()->first == "UNAVAILABLE" ||
                                       summary.errors.begin()->first == "DEADLINE_EXCEEDED");
    return unreachable ? kExitNoAnswer : kExitServerError;
  }

  CommonFlags common_;
  Protocol protocol_ = Protocol::kAttendant;
  TargetSpec target_;
  LoadPlan plan_{.warmup = absl::Seconds(2)};
  int64_t concurrency_ = 8;
  int64_t max_outstanding_ = 10000;
  absl::Duration duration_ = absl::ZeroDuration();
  std::string texts_file_;
  std::string lengths_ = "mixed";
};

}  // namespace

CommandInfo LoadCommandInfo() {
  return {
      .name = "load",
      .summary = "Sends many requests and measures throughput and latency",
      .arguments = "",
      .details =
          "Latency runs from the time at which a request should have been sent, so a stall of the "
          "server counts\nfor every request that it delays. Ctrl-C ends the load early and still "
          "reports. The exit code is 0 if\nat least one request succeeded.\n\n"
          "  attendant load --concurrency 16 --lengths fixed:128\n"
          "  attendant load --rate 200 --texts texts.txt --duration 1m --json\n"
          "  attendant load --protocol kserve --model NAME.ids --server triton:8001\n",
      .make = []() -> std::unique_ptr<Command> { return std::make_unique<LoadCommand>(); }};
}

}  // namespace attendant::client
