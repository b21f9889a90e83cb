// SPDX-License-Identifier: Apache-2.0
// Batches of the server's queue beside those of padding schedulers, on a simulated clock.
// tests/bench/README.md explains the tables.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "tests/bench/simulator/simulate.h"

ABSL_FLAG(int64_t, requests, 20000, "of each trace");
ABSL_FLAG(uint64_t, seed, 1, "of the traces");
ABSL_FLAG(int64_t, max_batch_tokens, 1024, "of the server; others take their best budget");
ABSL_FLAG(double, batch_ms, 1, "cost of a batch: fixed part");
ABSL_FLAG(double, sequence_us, 40, "cost of a batch: each sequence");
ABSL_FLAG(double, token_us, 25, "cost of a batch: each token, padding included");
ABSL_FLAG(double, square_ns, 35,
          "cost of a batch: each sequence's squared length, padding included");
ABSL_FLAG(int, limit_ms, 50, "goodput counts while 99 % of the requests are answered within this");

namespace attendant::bench {
namespace {

constexpr int64_t kBudgets[] = {512, 1024, 2048, 4096, 8192, 16384};

struct Contender {
  std::unique_ptr<Scheduler> (*make)(const SchedulerOptions&);
  double mark = 0;  // the server's goodput is to be at least this multiple; 0: it is the server
};
constexpr Contender kContenders[] = {
    {MakeAttendant, 0}, {MakePaddedFifo, 1.9}, {MakeSortedWindow, 1.5}, {MakePaddedProgram, 1.2}};

Costs CostsFromFlags() {
  return {.batch_ms = absl::GetFlag(FLAGS_batch_ms),
          .sequence_ms = absl::GetFlag(FLAGS_sequence_us) / 1e3,
          .token_ms = absl::GetFlag(FLAGS_token_us) / 1e3,
          .square_ms = absl::GetFlag(FLAGS_square_ns) / 1e6};
}

// A full batch of sequences of this length.
absl::Duration FullBatch(int64_t len) {
  BatchShape shape;
  for (int64_t i = 0; i < absl::GetFlag(FLAGS_max_batch_tokens) / len; ++i) shape.Add(len);
  return CostsFromFlags().Of(shape);
}

double Ms(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

struct Best {
  SchedulerOptions options;
  double goodput = 0;
  double same_budget = 0;  // the goodput with the server's budget
};

Best FindBest(const Contender& contender) {
  Best best;
  for (const int64_t budget : kBudgets) {
    if (contender.mark == 0 && budget != absl::GetFlag(FLAGS_max_batch_tokens)) continue;
    const SchedulerOptions options{.max_batch_tokens = budget, .costs = CostsFromFlags()};
    const double goodput = Goodput([&] { return contender.make(options); }, options.costs,
                                   absl::Milliseconds(absl::GetFlag(FLAGS_limit_ms)),
                                   absl::GetFlag(FLAGS_requests), absl::GetFlag(FLAGS_seed));
    if (budget == absl::GetFlag(FLAGS_max_batch_tokens)) best.same_budget = goodput;
    if (goodput > best.goodput) best = {options, goodput, best.same_budget};
  }
  return best;
}

std::string Verdict(double value, double mark, bool at_least) {
  const bool met = at_least ? value >= mark : value <= mark;
  return met ? "met" : "MISSED";
}

std::vector<Best> PrintGoodput() {
  std::printf(
      "Goodput: the highest Poisson rate with p99 <= %d ms; lengths log-normal, median 48\n\n",
      absl::GetFlag(FLAGS_limit_ms));
  std::printf(
      "| scheduler | requests/s, budget %ld | server / this | requests/s, best budget | "
      "server / this | mark |\n|---|---|---|---|---|---|\n",
      static_cast<long>(absl::GetFlag(FLAGS_max_batch_tokens)));
  std::vector<Best> all;
  for (const Contender& contender : kContenders) {
    all.push_back(FindBest(contender));
    const Best& best = all.back();
    const double same = all.front().goodput / best.same_budget;
    const double least = all.front().goodput / best.goodput;
    std::printf("| %s | %.0f | %.2f | %.0f (%ld) | %.2f |",
                contender.make(best.options)->name().c_str(), best.same_budget, same, best.goodput,
                static_cast<long>(best.options.max_batch_tokens), least);
    if (contender.mark == 0) {
      std::printf(" |\n");
    } else {
      std::printf(" >= %.1f: %s, %s |\n", contender.mark,
                  Verdict(same, contender.mark, true).c_str(),
                  Verdict(least, contender.mark, true).c_str());
    }
  }
  return all;
}

struct Class {
  const char* name;
  int64_t longest;
};
constexpr Class kClasses[] = {{"1 to 64", 64}, {"65 to 256", 256}, {"257 to 512", 512}};

bool In(const Class& c, const Arrival& arrival) {
  int64_t below = 0;
  for (const Class& other : kClasses) {
    if (other.longest < c.longest) below = other.longest;
  }
  return arrival.lens.front() > below && arrival.lens.front() <= c.longest;
}

// p50 and p99 of the requests for which `wanted` holds.
void PrintCell(const Trace& trace, const Outcome& outcome,
               const std::function<bool(const Arrival&)>& wanted) {
  const auto latencies = Latencies(trace, outcome, wanted);
  std::printf(" %.1f / %.1f |", Ms(Percentile(latencies, 0.5)), Ms(Percentile(latencies, 0.99)));
}

void PrintClassCells(const Trace& trace, const Outcome& outcome) {
  for (const Class& c : kClasses) {
    PrintCell(trace, outcome, [&c](const Arrival& arrival) { return In(c, arrival); });
  }
}

void PrintClasses(const std::string& title, const Trace& trace, const std::vector<Best>& all) {
  std::printf("\n%s: p50 / p99 in ms by length\n\n| scheduler |", title.c_str());
  for (const Class& c : kClasses) std::printf(" %s |", c.name);
  std::printf("\n|---|---|---|---|\n");
  for (size_t i = 0; i < all.size(); ++i) {
    const std::unique_ptr<Scheduler> scheduler = kContenders[i].make(all[i].options);
    const Outcome outcome = Simulate(trace, *scheduler, all[i].options.costs);
    std::printf("| %s |", scheduler->name().c_str());
    PrintClassCells(trace, outcome);
    std::printf("\n");
  }
}

Outcome SimulateServer(const Trace& trace) {
  const SchedulerOptions options{.max_batch_tokens = absl::GetFlag(FLAGS_max_batch_tokens)};
  return Simulate(trace, *MakeAttendant(options), CostsFromFlags());
}

// The server alone. 32 clients, of which each waits for its answer, keep the queue full.
void PrintClosedLoop() {
  constexpr int kClients = 32;
  constexpr absl::Duration kPause = absl::Milliseconds(1);
  std::printf(
      "\nClosed loop of %d clients: latency in ms\n\n"
      "| lengths | budget | requests/s | p50 | p99 | p99 above budget / 4 | p99 / p50 | mark |\n"
      "|---|---|---|---|---|---|---|---|\n",
      kClients);
  struct Lengths {
    const char* name;
    Trace (*make)(int64_t requests, double requests_per_second, uint64_t seed);
  };
  for (const auto& [name, make] : {Lengths{"mixed", MixedTrace}, {"real texts", RealTextsTrace}}) {
    for (const int64_t budget : {1024, 2048, 4096}) {
      Trace trace = make(absl::GetFlag(FLAGS_requests), 1, absl::GetFlag(FLAGS_seed));
      const SchedulerOptions options{.max_batch_tokens = budget};
      const Outcome outcome =
          SimulateClosedLoop(kClients, kPause, trace, *MakeAttendant(options), CostsFromFlags());
      const auto at = [&](int64_t above, double share) {
        return Ms(Percentile(
            Latencies(trace, outcome, [above](const Arrival& a) { return a.lens.front() > above; }),
            share));
      };
      const double seconds = absl::ToDoubleSeconds(trace.back().at - TraceStart());
      const double ratio = at(0, 0.99) / at(0, 0.5);
      std::printf("| %s | %ld | %.0f | %.1f | %.1f | %.1f | %.2f | <= 2.5: %s |\n", name,
                  static_cast<long>(budget), static_cast<double>(trace.size()) / seconds,
                  at(0, 0.5), at(0, 0.99), at(budget / 4, 0.99), ratio,
                  Verdict(ratio, 2.5, false).c_str());
    }
  }
}

// Real texts at random times, at shares of the rate that a full queue gives.
void PrintRealTexts() {
  const int64_t requests = absl::GetFlag(FLAGS_requests);
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  Trace full = RealTextsTrace(requests, 1e6, seed);
  const absl::Time end = TraceStart() + SimulateServer(full).fates.back().latency;
  const double most = static_cast<double>(requests) / absl::ToDoubleSeconds(end - TraceStart());
  std::printf("\nReal texts, Poisson: p50 / p99 in ms by length\n\n| load | all |");
  for (const Class& c : kClasses) std::printf(" %s |", c.name);
  std::printf("\n|---|---|---|---|---|\n");
  for (const double load : {0.5, 0.7, 0.85, 0.95}) {
    const Trace trace = RealTextsTrace(requests, load * most, seed);
    const Outcome outcome = SimulateServer(trace);
    std::printf("| %.0f %% |", 100 * load);
    PrintCell(trace, outcome, [](const Arrival&) { return true; });
    PrintClassCells(trace, outcome);
    std::printf("\n");
  }
}

// 512-token requests at 80 % of what full batches of them could do, and some of 64 tokens.
void PrintFlood() {
  constexpr int64_t kLong = 512;
  const int64_t requests = absl::GetFlag(FLAGS_requests);
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  const double full_ms = Ms(FullBatch(kLong));
  const double per_batch =
      static_cast<double>(absl::GetFlag(FLAGS_max_batch_tokens)) / static_cast<double>(kLong);
  const double rate = 0.8 * per_batch / full_ms * 1e3;
  const Trace trace = Merge(UniformTrace(requests, rate, kLong, seed),
                            UniformTrace(requests / 10, rate / 10, 64, seed + 1));
  const Outcome outcome = SimulateServer(trace);
  const auto at = [&](int64_t len, double share) {
    return Ms(Percentile(
        Latencies(trace, outcome, [len](const Arrival& a) { return a.lens.front() == len; }),
        share));
  };
  std::printf(
      "\n512-token requests at 80 %% load (a full batch takes %.1f ms), and 64-token ones:\n\n",
      full_ms);
  std::printf("| length | p50, full batches | p99, full batches | mark |\n|---|---|---|---|\n");
  std::printf("| 64 | %.2f | %.2f | <= 1.5: %s |\n", at(64, 0.5) / full_ms, at(64, 0.99) / full_ms,
              Verdict(at(64, 0.99) / full_ms, 1.5, false).c_str());
  std::printf("| 512 | %.2f | %.2f | |\n", at(kLong, 0.5) / full_ms, at(kLong, 0.99) / full_ms);
}

// A client that asks for twice of what the server can do, and others with 5 % of that.
void PrintGreedy() {
  constexpr uint64_t kGreedy = 1;
  const double full_ms = Ms(FullBatch(64));
  const double rate =
      static_cast<double>(absl::GetFlag(FLAGS_max_batch_tokens)) / 64 / full_ms * 1e3;
  const int64_t requests = absl::GetFlag(FLAGS_requests);
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  std::printf(
      "\n64-token requests, twice as many as the server can do from one client and 5 %% of that "
      "from others: waits of the others in full batches\n\n"
      "| turns | p50 | p99 | longest | mark |\n|---|---|---|---|---|\n");
  for (const bool by_client : {false, true}) {
    Trace greedy = UniformTrace(requests, 2 * rate, 64, seed);
    Trace others = UniformTrace(requests / 40, rate / 20, 64, seed + 1);
    for (Arrival& arrival : greedy) arrival.client = kGreedy;
    for (size_t i = 0; i < others.size(); ++i) others[i].client = by_client ? 2 + i : kGreedy;
    for (Arrival& arrival : others) arrival.lens = {63};  // to know them by
    const Trace trace = Merge(greedy, others);
    const Outcome outcome = SimulateServer(trace);
    std::vector<absl::Duration> waits;
    for (size_t i = 0; i < trace.size(); ++i) {
      if (trace[i].lens.front() == 63) waits.push_back(outcome.fates[i].wait);
    }
    const double longest = Ms(Percentile(waits, 1)) / full_ms;
    std::printf("| %s | %.2f | %.2f | %.2f |%s |\n", by_client ? "of clients" : "of requests alone",
                Ms(Percentile(waits, 0.5)) / full_ms, Ms(Percentile(waits, 0.99)) / full_ms,
                longest, by_client ? (" <= 2: " + Verdict(longest, 2, false)).c_str() : "");
  }
}

void PrintWhale(double goodput) {
  const double full_ms = Ms(FullBatch(64));
  const absl::Time arrival = TraceStart() + absl::Milliseconds(500);
  std::printf(
      "\nOne request of 4,096 x 64 tokens. How long others, which arrive before its end, wait for "
      "their batch, in full batches\n\n");
  std::printf(
      "| load of the others | p99 | longest | mark | longest without it | its own time, s |\n"
      "|---|---|---|---|---|---|\n");
  for (const double load : {0.1, 0.3, 0.6}) {
    const Trace others =
        MixedTrace(absl::GetFlag(FLAGS_requests), load * goodput, absl::GetFlag(FLAGS_seed));
    const Trace trace = Merge(others, {Whale(arrival)});
    const Outcome outcome = SimulateServer(trace);
    const Outcome without = SimulateServer(others);
    const auto whale = std::find_if(trace.begin(), trace.end(),
                                    [](const Arrival& a) { return a.lens.size() > 1; });
    const auto place = static_cast<size_t>(whale - trace.begin());
    const absl::Duration whale_time = outcome.fates[place].latency;
    std::vector<absl::Duration> waits, waits_without;
    for (size_t i = 0; i < trace.size(); ++i) {
      if (i == place || trace[i].at < arrival || trace[i].at > arrival + whale_time) continue;
      waits.push_back(outcome.fates[i].wait);
      waits_without.push_back(without.fates[i < place ? i : i - 1].wait);
    }
    const double longest = Ms(Percentile(waits, 1)) / full_ms;
    std::printf("| %.0f %% | %.2f | %.2f | <= 2: %s | %.2f | %.1f |\n", 100 * load,
                Ms(Percentile(waits, 0.99)) / full_ms, longest, Verdict(longest, 2, false).c_str(),
                Ms(Percentile(waits_without, 1)) / full_ms, absl::ToDoubleSeconds(whale_time));
  }
}

void Main() {
  if (absl::GetFlag(FLAGS_max_batch_tokens) < 512) {
    std::fprintf(stderr, "--max_batch_tokens must be at least 512, the longest sequence\n");
    std::exit(1);
  }
  const Costs costs = CostsFromFlags();
  std::printf(
      "A batch costs %.3f ms + sequences x %.4f ms + tokens x %.5f ms + sum of len^2 x "
      "%.7f ms; seed %lu\n\n",
      costs.batch_ms, costs.sequence_ms, costs.token_ms, costs.square_ms,
      static_cast<unsigned long>(absl::GetFlag(FLAGS_seed)));
  const std::vector<Best> all = PrintGoodput();
  const int64_t requests = absl::GetFlag(FLAGS_requests);
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  const double slowest = all[1].goodput;
  PrintClasses("Poisson at 90 % of padded FIFO's goodput",
               MixedTrace(requests, 0.9 * slowest, seed), all);
  PrintClasses("Bursts of 32 at half of padded FIFO's goodput",
               BurstTrace(requests, 0.5 * slowest, 32, seed), all);
  PrintClosedLoop();
  PrintRealTexts();
  PrintFlood();
  PrintGreedy();
  PrintWhale(all.front().goodput);
}

}  // namespace
}  // namespace attendant::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Compares ways to make batches on a simulated clock.");
  absl::ParseCommandLine(argc, argv);
  attendant::bench::Main();
}
