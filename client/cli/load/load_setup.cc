// SPDX-License-Identifier: Apache-2.0
#include "client/cli/load/load_setup.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/load/load_protocols.h"
#include "client/load/trace.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr absl::Duration kDefaultDuration = absl::Seconds(10);
constexpr absl::Duration kLongestForConfidence = absl::Minutes(5);
constexpr size_t kMaxSweepRates = 64;
// Beyond these a load generator has no memory or no time: a schedule counts quarters of a
// nanosecond.
constexpr double kMaxRate = 1e6;
constexpr int64_t kMaxConnections = 65535;
constexpr int64_t kMaxOutstanding = 1'000'000;
constexpr int64_t kMaxBatch = 1'000'000;

absl::StatusOr<std::vector<Condition>> ParseAll(
    const std::vector<std::string>& texts, absl::string_view flag,
    absl::StatusOr<Condition> (*parse)(absl::string_view)) {
  std::vector<Condition> conditions;
  for (const std::string& text : texts) {
    absl::StatusOr<Condition> condition = parse(text);
    if (!condition.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("--", flag, ": ", condition.status().message()));
    }
    conditions.push_back(*std::move(condition));
  }
  return conditions;
}

// They tell files of the same name apart.
size_t NumBytes(const std::vector<std::string>& texts) {
  return std::transform_reduce(texts.begin(), texts.end(), size_t{0}, std::plus<>(),
                               [](const std::string& text) { return text.size(); });
}

}  // namespace

void LoadSetup::AddTo(FlagParser& flags) {
  std::vector<std::string> words;
  for (const LoadProtocol& row : LoadProtocols()) words.push_back(row.word);
  flags.AddChoice(
      "protocol", &protocol_, words,
      "The service to call: attendant.v1; KServe v2, which Triton speaks too; tei.v1 of "
      "text-embeddings-inference; or at the server's HTTP port KServe v2, "
      "text-embeddings-inference "
      "(/embed, /rerank), OpenAI's embeddings, Cohere (/v2/embed, /v2/rerank)");
  flags.Add("model", &target_.model, "NAME",
            "The model; attendant, tei, tei_http and tei_rerank find a server's only one");
  flags.AddNumber(
      "model_version", &target_.model_version, "N", {0},
      "attendant, kserve and kserve_http: the version of the model; 0 leaves the choice "
      "to the server, and Attendant's is the highest that serves");
  AddPlanFlags(flags);
  AddRequestFlags(flags);
  AddVerdictFlags(flags);
  AddOutputFlags(flags);
  common.AddTo(flags);
}

void LoadSetup::AddPlanFlags(FlagParser& flags) {
  flags.Section("Plan");
  flags.AddNumber("connections", &plan.connections, "N", {1, kMaxConnections}, "TCP connections");
  flags.AddSwitch("streaming", &target_.streaming,
                  "attendant, kserve and tei: all requests of a connection go on one stream, "
                  "instead of a call for each");
  flags.AddNumber("concurrency", &concurrency_, "N", {1, kMaxOutstanding},
                  "Closed loop: requests outstanding on each connection");
  flags.AddNumber("rate", &plan.requests_per_s, "R", {0, kMaxRate},
                  "Open loop: R requests per second on average; 0 is a closed loop");
  flags.Add("arrivals", &arrivals_, "SPEC",
            "Open loop: poisson (random times), constant (evenly), or bursts:N (N at once, the "
            "bursts at random times)");
  flags.Add("replay", &replay_file_, "FILE",
            "Open loop: send requests at the times and with the lengths or texts of a trace: JSON "
            "lines with timestamp (ms) and input_length or text_input, or the server's access log");
  flags.AddNumber("speed", &speed_, "X", {0.001, 1000}, "--replay: X times as fast");
  flags.AddNumber("max_outstanding", &max_outstanding_, "N", {1, kMaxOutstanding},
                  "Open loop: a request that finds N others outstanding is counted, not sent");
  flags.Add("duration", &duration_, "DURATION",
            "How long to measure; 0 is 10s, the whole trace, or no limit when --requests is given");
  flags.Add("warmup", &plan.warmup, "DURATION", "How long to run before measuring");
  flags.AddNumber("requests", &plan.max_requests, "N", {0},
                  "Measure this many requests; 0 is no limit");
  flags.AddNumber("confidence", &confidence_percent, "PERCENT", {0, 100},
                  "Stop when the 95 % confidence interval of the p99 (of the mean, with few "
                  "requests) is within this many percent of it, after --duration or 5m at the "
                  "latest; 0 does not");
  flags.Add("seed", &plan.seed, "N", "Seed of all random choices");
}

void LoadSetup::AddRequestFlags(FlagParser& flags) {
  flags.Section("Requests");
  flags.Add("texts", &texts_file_, "FILE",
            "Send the lines of FILE, shuffled, again and again; without it, random token ids, or "
            "words where the protocol takes text");
  flags.Add(
      "lengths", &lengths_, "SPEC",
      "Lengths of random sequences: fixed:N, uniform:LOW:HIGH, "
      "lognormal:MEDIAN:SIGMA:LOW:HIGH, file:PATH (any number in that file), or mixed, which "
      "is lognormal:48:0.54:4:512; attendant, tei and tei_http cut them to the model's limit; a "
      "KServe model that takes text gets words");
  flags.AddNumber("batch", &target_.payload.batch, "N", {1, kMaxBatch},
                  "Sequences in each request; of a reranker, texts for one query");
  flags.AddChoice<bool>("output", &target_.hidden, {{"pooled", false}, {"hidden", true}},
                        "attendant: ask for embeddings, or for hidden states");
  flags.AddNumber("vocab", &target_.payload.vocab, "N", {1},
                  "Random token ids are below N, and below the model's vocabulary");
  flags.AddRepeated("shape", &target_.shapes, "INPUT:N,N",
                    "kserve, kserve_http: the -1 dimensions of an input, without the batch; may be "
                    "given many times");
  flags.AddChoice<bool>("tensors", &target_.json_tensors, {{"binary", false}, {"json", true}},
                        "kserve_http: tensors as bytes behind the JSON, or in it");
}

void LoadSetup::AddVerdictFlags(FlagParser& flags) {
  flags.Section("Verdict");
  flags.AddRepeated("fail_if", &fail_if_, "CONDITION",
                    "Exit code 5 when the condition is true: p99>50ms, service.mean>=2ms, "
                    "error_rate>1%, requests_per_s<100; may be given many times. In a latency, a "
                    "request that was not sent or passed its deadline takes for ever; other errors "
                    "count in error_rate only");
  flags.AddSwitch("find_max", &find_max,
                  "Search the highest rate that keeps every --slo and that the server keeps up "
                  "with, from --rate on (10 when that is 0), one load of --duration for each rate");
  flags.AddRepeated("slo", &slo_, "OBJECTIVE",
                    "--find_max: p99=50ms, mean=5ms, error_rate=1%; may be given many times. "
                    "Without one for error_rate, no request may fail");
  flags.Add("sweep", &sweep_, "R,R,..", "One load for each of these rates");
}

void LoadSetup::AddOutputFlags(FlagParser& flags) {
  flags.Section("Output");
  flags.Add("html", &html_file, "FILE", "Write a page with charts, which needs no other file");
  flags.Add("hlog", &hlog_file, "FILE", "Write the histograms as HdrHistogram's tools read them");
  flags.Add("jsonl", &jsonl_file, "FILE",
            "Write each request as a line of JSON, as AIPerf's profile_export.jsonl");
  flags.AddSwitch("live", &live, "Show the live view though standard error is no terminal");
}

absl::Status LoadSetup::Prepare() {
  if (plan.warmup < absl::ZeroDuration() || duration_ < absl::ZeroDuration()) {
    return absl::FailedPreconditionError("--warmup and --duration cannot be negative");
  }
  if (plan.warmup == absl::InfiniteDuration()) {
    return absl::FailedPreconditionError("--warmup must end");
  }
  if (plan.connections * concurrency_ > kMaxOutstanding) {
    return absl::FailedPreconditionError(absl::StrCat("--connections times --concurrency is ",
                                                      plan.connections * concurrency_,
                                                      ", the limit is ", kMaxOutstanding));
  }
  plan.duration = duration_ > absl::ZeroDuration() ? duration_
                  : confidence_percent > 0         ? kLongestForConfidence
                  : plan.max_requests > 0          ? absl::InfiniteDuration()
                                                   : kDefaultDuration;
  ATTENDANT_RETURN_IF_ERROR(PrepareVerdicts());
  ATTENDANT_RETURN_IF_ERROR(PrepareSweep());
  ATTENDANT_RETURN_IF_ERROR(PrepareArrivals());
  ATTENDANT_RETURN_IF_ERROR(PrepareRequests());
  if (!replay_file_.empty()) ATTENDANT_RETURN_IF_ERROR(PrepareTrace());
  const bool open = plan.open_loop() || !sweep_rates.empty();
  ATTENDANT_RETURN_IF_ERROR(CheckLoop(open));
  plan.max_outstanding = open ? max_outstanding_ : plan.connections * concurrency_;
  target_.connect = common.connect;
  target_.connections = plan.connections;
  return absl::OkStatus();
}

absl::Status LoadSetup::CheckLoop(bool open) const {
  const LoadSetup unset;
  const bool replay = !replay_file_.empty();
  const auto refuse = [](const char* why) { return absl::FailedPreconditionError(why); };
  if (arrivals_ != unset.arrivals_ && (!open || replay)) {
    return refuse("--arrivals needs --rate, --sweep or --find_max");
  }
  if (max_outstanding_ != unset.max_outstanding_ && !open) {
    return refuse("--max_outstanding needs --rate, --sweep, --find_max or --replay");
  }
  if (concurrency_ != unset.concurrency_ && open) {
    return refuse(
        "--concurrency is of the closed loop: --rate, --sweep, --find_max and --replay do not go "
        "with it; --max_outstanding bounds an open loop");
  }
  if (speed_ != unset.speed_ && !replay) return refuse("--speed needs --replay");
  return absl::OkStatus();
}

absl::Status LoadSetup::PrepareArrivals() {
  absl::string_view spec = arrivals_;
  Arrivals& arrivals = plan.arrivals;
  if (spec == "poisson") return absl::OkStatus();
  if (spec == "constant") {
    arrivals.kind = Arrivals::Kind::kConstant;
  } else if (absl::ConsumePrefix(&spec, "bursts:") && absl::SimpleAtoi(spec, &arrivals.burst) &&
             arrivals.burst >= 1) {
    arrivals.kind = Arrivals::Kind::kBursts;
  } else {
    return absl::FailedPreconditionError(absl::StrCat("--arrivals: cannot read '", arrivals_,
                                                      "'; write poisson, constant or bursts:N"));
  }
  return absl::OkStatus();
}

absl::Status LoadSetup::CheckRequestFlags() const {
  const LoadSetup unset;
  const bool has_vocab = target_.payload.vocab != unset.target_.payload.vocab;
  const struct {
    const char* flag;
    bool is_given;
    bool LoadProtocol::*is_taken;
  } flags[] = {
      {"--output", target_.hidden, &LoadProtocol::takes_output},
      {"--vocab", has_vocab, &LoadProtocol::takes_vocab},
      {"--shape", !target_.shapes.empty(), &LoadProtocol::takes_shape},
      {"--tensors", target_.json_tensors, &LoadProtocol::takes_tensors},
  };
  for (const auto& [flag, is_given, is_taken] : flags) {
    if (!is_given || FindLoadProtocol(protocol_).*is_taken) continue;
    std::vector<absl::string_view> takers;
    for (const LoadProtocol& row : LoadProtocols()) {
      if (row.*is_taken) takers.push_back(row.word);
    }
    return absl::FailedPreconditionError(absl::StrCat(
        flag, ": --protocol ", protocol_, " does not use it, only ", absl::StrJoin(takers, ", ")));
  }
  if (!texts_file_.empty() && (has_vocab || lengths_ != unset.lengths_)) {
    return absl::FailedPreconditionError(
        "--lengths and --vocab are of random sequences: they do not go with --texts");
  }
  const bool has_batch = target_.payload.batch != unset.target_.payload.batch;
  if (!replay_file_.empty() && (has_batch || lengths_ != unset.lengths_)) {
    return absl::FailedPreconditionError(
        "--lengths and --batch are of requests that the load makes up: they do not go with "
        "--replay");
  }
  return absl::OkStatus();
}

absl::Status LoadSetup::PrepareRequests() {
  const LoadProtocol& protocol = FindLoadProtocol(protocol_);
  if (target_.streaming && !protocol.has_streams) {
    return absl::FailedPreconditionError(
        absl::StrCat("--streaming: --protocol ", protocol_, " has no streams"));
  }
  if (protocol.needs_model && target_.model.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--protocol ", protocol_, " needs a --model"));
  }
  if (target_.model_version != 0 && !protocol.has_versions) {
    return absl::FailedPreconditionError(
        absl::StrCat("--model_version: a request of --protocol ", protocol_, " names no version"));
  }
  ATTENDANT_RETURN_IF_ERROR(CheckRequestFlags());
  ATTENDANT_ASSIGN_OR_RETURN(target_.payload.lengths, LengthDistribution::Parse(lengths_));
  if (!texts_file_.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(target_.payload.texts, ReadTexts(texts_file_));
  }
  target_.payload.seed = plan.seed;
  return absl::OkStatus();
}

absl::Status LoadSetup::PrepareTrace() {
  if (plan.open_loop() || !sweep_rates.empty() || !texts_file_.empty()) {
    return absl::FailedPreconditionError(
        "--replay has its own rate and requests: --rate, --sweep, --find_max and --texts do not go "
        "with it");
  }
  std::ifstream file(replay_file_);
  absl::StatusOr<std::vector<TraceEntry>> trace = ReadTrace(file);
  if (!file.is_open() || file.bad()) {  // a folder opens, and cannot be read
    return absl::FailedPreconditionError(
        absl::StrCat("--replay: the file ", replay_file_, " cannot be read"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(target_.payload.trace, std::move(trace));
  // No trace holds longer sequences; the model's limit cuts them.
  ATTENDANT_ASSIGN_OR_RETURN(target_.payload.lengths,
                             LengthDistribution::Parse("uniform:1:1048576"));
  auto times = std::make_shared<std::vector<absl::Duration>>();
  for (const TraceEntry& entry : target_.payload.trace) times->push_back(entry.time / speed_);
  const absl::Duration end = times->back() + absl::Microseconds(1);
  if (end <= plan.warmup) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--replay: the trace takes ", absl::FormatDuration(end), ", no longer than --warmup"));
  }
  plan.requests_per_s = static_cast<double>(times->size()) / absl::ToDoubleSeconds(end);
  plan.duration =
      duration_ > absl::ZeroDuration() ? std::min(duration_, end - plan.warmup) : end - plan.warmup;
  plan.arrivals = {.kind = Arrivals::Kind::kTrace, .burst = 1, .times = std::move(times)};
  return absl::OkStatus();
}

absl::Status LoadSetup::PrepareVerdicts() {
  ATTENDANT_ASSIGN_OR_RETURN(failures, ParseAll(fail_if_, "fail_if", &Condition::Parse));
  ATTENDANT_ASSIGN_OR_RETURN(objectives, ParseAll(slo_, "slo", &Condition::ParseObjective));
  if (find_max != !objectives.empty()) {
    return absl::FailedPreconditionError("--find_max and --slo go together");
  }
  if (find_max && plan.max_requests > 0) {
    return absl::FailedPreconditionError(
        "--find_max takes --duration, not --requests: a load that ends with its last answer does "
        "not tell whether the server keeps up");
  }
  // Until the first answers come, more and more requests wait at any server: that is no backlog.
  for (const Condition& objective : objectives) {
    plan.warmup = std::max(plan.warmup, std::min(objective.latency_bound(), plan.duration));
  }
  if (find_max && plan.requests_per_s == 0) plan.requests_per_s = 10;
  return absl::OkStatus();
}

absl::Status LoadSetup::PrepareSweep() {
  if (!sweep_.empty()) {
    for (absl::string_view part : absl::StrSplit(sweep_, ',')) {
      double rate = 0;
      if (!absl::SimpleAtod(part, &rate) || !(rate > 0 && rate <= kMaxRate)) {
        return absl::FailedPreconditionError(
            absl::StrCat("--sweep: '", part, "' is no rate above 0 and up to 1000000"));
      }
      sweep_rates.push_back(rate);
    }
  }
  if (sweep_rates.size() > kMaxSweepRates) {
    return absl::FailedPreconditionError(
        absl::StrCat("--sweep has ", sweep_rates.size(), " rates, the limit is ", kMaxSweepRates));
  }
  if (find_max && !sweep_rates.empty()) {
    return absl::FailedPreconditionError("--find_max and --sweep do not go together");
  }
  const bool several = find_max || !sweep_rates.empty();
  if (several && !(hlog_file.empty() && jsonl_file.empty() && failures.empty())) {
    return absl::FailedPreconditionError(
        "--hlog, --jsonl and --fail_if are about one load: they do not go with --sweep or "
        "--find_max");
  }
  return absl::OkStatus();
}

absl::StatusOr<Target> LoadSetup::MakeTarget() const {
  return FindLoadProtocol(protocol_).make(target_);
}

std::string LoadSetup::protocol_title() const {
  return absl::StrCat(FindLoadProtocol(protocol_).title, target_.streaming ? ", streaming" : "");
}

std::string LoadSetup::DescribePayload(bool words) const {
  const PayloadSpec& payload = target_.payload;
  if (!replay_file_.empty()) {
    return absl::StrCat(payload.trace.size(), " requests of ", replay_file_);
  }
  const int64_t batch = payload.batch;
  return absl::StrCat(batch, batch == 1 ? " sequence" : " sequences", " per request, ",
                      texts_file_.empty()
                          ? absl::StrCat("random ", words ? "words" : "ids", ", lengths ", lengths_)
                          : absl::StrCat(payload.texts.size(), " texts of ", texts_file_, ", ",
                                         NumBytes(payload.texts), " bytes"));
}

}  // namespace attendant::client
