// SPDX-License-Identifier: Apache-2.0
#include "client/load/driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "client/load/results/result.h"

namespace attendant::client {
namespace {

constexpr absl::Duration kMs = absl::Milliseconds(1);

// A clock and a server in one: a server that works on one call at a time and takes `service` for
// each, except that it stands still during [stall_begin, stall_end). Time passes only while
// somebody sleeps.
class Simulation : public LoadClock, public Caller {
 public:
  absl::Duration service = kMs;
  absl::Duration stall_begin = absl::InfiniteDuration();
  absl::Duration stall_end = absl::InfiniteDuration();
  // Start itself returns only after the stall, as when the generator's own thread is held up.
  bool stall_sender = false;
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::vector<absl::Duration> starts;
  std::vector<int64_t> indices;
  std::map<int64_t, int64_t> starts_by_connection;

  absl::Duration Now() const override { return now_; }

  void SleepUntil(absl::Duration time) override {
    while (!ends_.empty() && ends_.begin()->first <= time) {
      auto node = ends_.extract(ends_.begin());
      now_ = std::max(now_, node.key());
      node.mapped()({.code = code, .sequences = 2, .tokens = 10});
    }
    now_ = std::max(now_, time);
  }

  void Start(int64_t index, int64_t connection, Done done) override {
    starts.push_back(now_);
    indices.push_back(index);
    ++starts_by_connection[connection];
    if (stall_sender && Stalls(now_)) now_ = stall_end;
    absl::Duration begin = std::max(now_, busy_until_);
    if (Stalls(begin)) begin = stall_end;
    busy_until_ = begin + service;
    ends_.emplace(busy_until_, std::move(done));
  }

  void CancelAll() override {
    for (auto& [end, done] : std::exchange(ends_, {})) done({.code = grpc::StatusCode::CANCELLED});
  }

 private:
  bool Stalls(absl::Duration time) const { return time >= stall_begin && time < stall_end; }

  absl::Duration now_ = absl::ZeroDuration();
  absl::Duration busy_until_ = absl::ZeroDuration();
  std::multimap<absl::Duration, Done> ends_;
};

LoadSummary Play(const LoadPlan& plan, Simulation& simulation) {
  Recorder recorder(plan.warmup, plan.end());
  Driver driver(plan, simulation, simulation, recorder);
  driver.Run([] { return Course::kGoOn; });
  return recorder.Summarize(simulation.Now());
}

void ExpectNear(absl::Duration actual, absl::Duration expected, double relative) {
  EXPECT_NEAR(absl::FDivDuration(actual, expected), 1, relative) << actual << " not " << expected;
}

TEST(ClosedLoopTest, KeepsItsCallsOutstanding) {
  Simulation simulation;
  simulation.service = 10 * kMs;
  const LoadSummary summary =
      Play({.max_outstanding = 4, .warmup = absl::Seconds(1), .duration = absl::Seconds(10)},
           simulation);
  // Four calls wait for one server: 100 a second, and each takes four turns.
  EXPECT_NEAR(summary.requests_per_s, 100, 0.2);
  EXPECT_NEAR(summary.sequences_per_s, 200, 0.4);
  EXPECT_NEAR(summary.tokens_per_s.value_or(0), 1000, 2);
  ExpectNear(summary.response.p50, 40 * kMs, 0.005);
  ExpectNear(summary.response.max, 40 * kMs, 0.005);
  EXPECT_EQ(summary.window, absl::Seconds(10));
}

TEST(ClosedLoopTest, SpreadsSlotsOverConnections) {
  Simulation simulation;
  Play({.max_outstanding = 6, .connections = 3, .duration = absl::Seconds(1)}, simulation);
  ASSERT_EQ(simulation.starts_by_connection.size(), 3);
  EXPECT_NEAR(static_cast<double>(simulation.starts_by_connection[0]),
              static_cast<double>(simulation.starts_by_connection[2]), 2);
}

TEST(ClosedLoopTest, StopsAfterSoManyMeasuredRequests) {
  Simulation simulation;
  const LoadSummary summary =
      Play({.max_outstanding = 3, .warmup = absl::Seconds(1), .max_requests = 100}, simulation);
  EXPECT_EQ(summary.ok, 100);
  EXPECT_NEAR(summary.requests_per_s, 1000, 40);
  EXPECT_NEAR(static_cast<double>(simulation.starts.size()), 1100, 5);
}

TEST(ClosedLoopTest, DoesNotRushAgainstAnUnreachableServer) {
  Simulation simulation;
  simulation.service = absl::ZeroDuration();
  simulation.code = grpc::StatusCode::UNAVAILABLE;
  const LoadSummary summary =
      Play({.max_outstanding = 2, .duration = absl::Seconds(1)}, simulation);
  EXPECT_GE(summary.failed, 10);
  EXPECT_LE(summary.failed, 22);  // two slots, ten ticks
  EXPECT_EQ(summary.ok, 0);
  EXPECT_EQ(summary.errors.at("UNAVAILABLE").count, summary.failed);
}

TEST(ClosedLoopTest, EndsWhenInterruptedAndCountsWhatItCutOff) {
  Simulation simulation;
  simulation.service = 10 * kMs;
  Recorder recorder(absl::ZeroDuration(), absl::Seconds(100));
  const LoadPlan plan{.max_outstanding = 4, .duration = absl::Seconds(100)};
  Driver driver(plan, simulation, simulation, recorder);
  driver.Run(
      [&] { return simulation.Now() < absl::Seconds(2) ? Course::kGoOn : Course::kInterrupt; });
  const LoadSummary summary = recorder.Summarize(simulation.Now());
  ExpectNear(summary.window, absl::Seconds(2), 0.06);
  EXPECT_NEAR(static_cast<double>(summary.ok), 200, 12);
  EXPECT_EQ(summary.failed, 0);
  EXPECT_EQ(summary.cut_off, 4);
}

// The slow requests are those that run at the end: without them the tail would look better.
TEST(OpenLoopTest, AFinishedLoadWaitsForWhatRuns) {
  Simulation simulation;
  simulation.stall_begin = absl::Milliseconds(1900);
  simulation.stall_end = absl::Seconds(5);
  Recorder recorder(absl::ZeroDuration(), absl::Seconds(100));
  const LoadPlan plan{
      .requests_per_s = 100, .max_outstanding = 1000, .duration = absl::Seconds(100)};
  Driver driver(plan, simulation, simulation, recorder);
  driver.Run([&] { return simulation.Now() < absl::Seconds(2) ? Course::kGoOn : Course::kFinish; });
  const LoadSummary summary = recorder.Summarize(simulation.Now());
  EXPECT_EQ(summary.cut_off, 0);
  EXPECT_EQ(summary.ok, static_cast<int64_t>(simulation.starts.size()));
  EXPECT_GT(summary.response.max, absl::Seconds(3));
  ExpectNear(summary.window, absl::Seconds(2), 0.06);
}

TEST(OpenLoopTest, ArrivalsAreAPoissonProcess) {
  Simulation simulation;
  simulation.service = absl::ZeroDuration();
  const LoadSummary summary = Play(
      {.requests_per_s = 1000, .max_outstanding = 1000, .duration = absl::Seconds(20)}, simulation);
  // 20 000 arrivals are expected, with a standard deviation of 141.
  EXPECT_NEAR(static_cast<double>(summary.ok), 20000, 600);
  double sum = 0, squares = 0;
  for (size_t i = 1; i < simulation.starts.size(); ++i) {
    const double gap = absl::ToDoubleSeconds(simulation.starts[i] - simulation.starts[i - 1]);
    sum += gap;
    squares += gap * gap;
  }
  const double count = static_cast<double>(simulation.starts.size() - 1);
  const double mean = sum / count;
  EXPECT_NEAR(mean, 1e-3, 3e-5);
  // An exponential distribution's deviation is its mean.
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), mean, 0.05 * mean);
}

TEST(OpenLoopTest, TheSeedFixesTheSchedule) {
  const auto starts = [](uint64_t seed) {
    Simulation simulation;
    Play({.requests_per_s = 100, .max_outstanding = 9, .duration = absl::Seconds(1), .seed = seed},
         simulation);
    return simulation.starts;
  };
  EXPECT_EQ(starts(1), starts(1));
  EXPECT_NE(starts(1), starts(2));
}

// Two seconds of 1000 requests a second, of which one stands still: the server, or the sender.
LoadSummary PlayWithAStall(bool stall_sender) {
  Simulation simulation;
  simulation.service = absl::Microseconds(1);
  simulation.stall_sender = stall_sender;
  simulation.stall_begin = absl::Milliseconds(500);
  simulation.stall_end = absl::Milliseconds(1500);
  return Play({.requests_per_s = 1000, .max_outstanding = 5000, .duration = absl::Seconds(2)},
              simulation);
}

// A server that stands still for one of two seconds delays half of the requests by half a second on
// average. A generator that waits for answers would send, and see, a single slow one.
TEST(OpenLoopTest, AStalledServerShowsInFull) {
  const LoadSummary summary = PlayWithAStall(/*stall_sender=*/false);
  ExpectNear(summary.response.mean, absl::Milliseconds(250), 0.1);
  ExpectNear(summary.response.p90, absl::Milliseconds(800), 0.1);
  EXPECT_LT(summary.send_lag.max, kMs);
  EXPECT_EQ(summary.not_sent, 0);
}

// The same when it is the generator itself that is held up: response time is counted from the
// intended time. Service time shows that the server was fast.
TEST(OpenLoopTest, AStalledSenderShowsInFull) {
  const LoadSummary summary = PlayWithAStall(/*stall_sender=*/true);
  EXPECT_LT(summary.service.p90, kMs);
  ExpectNear(summary.send_lag.p90, absl::Milliseconds(800), 0.1);
  ExpectNear(summary.response.mean, absl::Milliseconds(250), 0.1);
  ExpectNear(summary.response.p90, absl::Milliseconds(800), 0.1);
  ExpectNear(summary.send_lag.max, absl::Seconds(1), 0.02);
}

TEST(OpenLoopTest, EveryKindOfArrivalsKeepsTheRate) {
  for (const Arrivals& arrivals : {Arrivals{.kind = Arrivals::Kind::kConstant},
                                   Arrivals{.kind = Arrivals::Kind::kBursts, .burst = 10}}) {
    Simulation simulation;
    simulation.service = absl::ZeroDuration();
    const LoadSummary summary = Play({.requests_per_s = 1000,
                                      .max_outstanding = 1000,
                                      .duration = absl::Seconds(20),
                                      .arrivals = arrivals},
                                     simulation);
    EXPECT_NEAR(static_cast<double>(summary.ok), 20000, 2000) << "burst " << arrivals.burst;
  }
}

TEST(OpenLoopTest, ATraceEndsAndARequestThatIsNotSentKeepsItsPlace) {
  Simulation simulation;
  simulation.service = absl::Seconds(1);
  const auto times = std::make_shared<const std::vector<absl::Duration>>(
      std::vector<absl::Duration>{100 * kMs, 200 * kMs, 1500 * kMs});
  const LoadSummary summary =
      Play({.requests_per_s = 2,
            .max_outstanding = 1,
            .arrivals = {.kind = Arrivals::Kind::kTrace, .burst = 1, .times = times}},
           simulation);
  EXPECT_EQ(simulation.starts, (std::vector<absl::Duration>{100 * kMs, 1500 * kMs}));
  EXPECT_EQ(simulation.indices, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(summary.ok, 2);
  EXPECT_EQ(summary.not_sent, 1);
}

TEST(OpenLoopTest, CountsWhatItCannotSend) {
  Simulation simulation;
  simulation.service = 10 * kMs;
  const LoadSummary summary = Play(
      {.requests_per_s = 1000, .max_outstanding = 5, .duration = absl::Seconds(10)}, simulation);
  EXPECT_NEAR(static_cast<double>(summary.ok), 1000, 10);
  EXPECT_NEAR(static_cast<double>(summary.ok + summary.not_sent), 10000, 400);
}

TEST(OpenLoopTest, AsManyAreOutstandingAsThePlanSays) {
  Simulation simulation;
  simulation.stall_begin = absl::ZeroDuration();
  simulation.stall_end = absl::Seconds(1);
  const LoadSummary summary = Play(
      {.requests_per_s = 1000, .max_outstanding = 5, .duration = absl::Seconds(1)}, simulation);
  EXPECT_EQ(simulation.starts.size(), 5u);
  EXPECT_NEAR(static_cast<double>(summary.not_sent), 995, 150);
}

// A server of 47 requests a second: latencies of a few seconds tell little of its backlog.
TEST(OpenLoopTest, AShortLoadTellsWhetherTheServerFallsBehind) {
  const auto falls_behind = [](double rate, int64_t burst, uint64_t seed) {
    Simulation simulation;
    simulation.service = absl::Seconds(1) / 47;
    LoadResult result;
    result.description.plan = {.requests_per_s = rate,
                               .max_outstanding = 10000,
                               .warmup = absl::Seconds(1),
                               .duration = absl::Seconds(4),
                               .seed = seed,
                               .arrivals = {.kind = Arrivals::Kind::kBursts, .burst = burst}};
    result.summary = Play(result.description.plan, simulation);
    return FallsBehind(result);
  };
  int kept = 0, bursts_kept = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_TRUE(falls_behind(80, 1, seed)) << seed;
    kept += falls_behind(37, 1, seed) ? 0 : 1;
    bursts_kept += falls_behind(30, 10, seed) ? 0 : 1;
  }
  EXPECT_GE(kept, 19);
  EXPECT_GE(bursts_kept, 18);
  EXPECT_TRUE(falls_behind(61.7, 1, 1));
}

TEST(OpenLoopTest, TheWarmupIsNotCounted) {
  Simulation simulation;
  simulation.stall_begin = absl::ZeroDuration();
  simulation.stall_end = absl::Milliseconds(500);
  const LoadSummary summary = Play({.requests_per_s = 100,
                                    .max_outstanding = 1000,
                                    .warmup = absl::Seconds(1),
                                    .duration = absl::Seconds(5)},
                                   simulation);
  EXPECT_LT(summary.response.max, 50 * kMs);
  EXPECT_NEAR(static_cast<double>(summary.ok), 500, 80);
}

}  // namespace
}  // namespace attendant::client
