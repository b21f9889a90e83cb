// SPDX-License-Identifier: Apache-2.0
// Bounds that hold for every trace and seed. How good the numbers are, the program says.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/bench/simulator/simulate.h"

namespace attendant::bench {
namespace {

const Costs kCosts{.batch_ms = 1, .sequence_ms = 0.01, .token_ms = 0.02, .square_ms = 0.00001};
const SchedulerOptions kOptions{.costs = kCosts};

absl::Duration FullBatch(int64_t len) {
  BatchShape shape;
  for (int64_t i = 0; i < kOptions.max_batch_tokens / len; ++i) shape.Add(len);
  return kCosts.Of(shape);
}

Outcome Serve(const Trace& trace) { return Simulate(trace, *MakeAttendant(kOptions), kCosts); }

// Every sequence ran once, in its request's order, and no batch is too large.
void ExpectComplete(const Trace& trace, const Outcome& outcome, int64_t budget) {
  std::map<size_t, std::vector<int64_t>> ran;
  for (const SimulatedBatch& batch : outcome.batches) {
    const bool single = batch.members.size() == 1;
    EXPECT_TRUE(single || batch.computed.tokens <= budget);
    EXPECT_LE(batch.computed.sequences, kOptions.max_batch_sequences);
    for (const Member& member : batch.members) ran[member.request].push_back(member.len);
  }
  ASSERT_EQ(ran.size(), trace.size());
  for (size_t i = 0; i < trace.size(); ++i) EXPECT_EQ(ran[i], trace[i].lens) << i;
}

class SchedulerTest : public testing::TestWithParam<uint64_t> {};

TEST_P(SchedulerTest, RunsEverySequenceOnce) {
  const Trace mixed = Merge(MixedTrace(300, 700, GetParam()),
                            {{.at = TraceStart(), .lens = {1, 512, 3, 300, 300, 2}}});
  for (const auto make : {MakeAttendant, MakePaddedFifo, MakeSortedWindow, MakePaddedProgram}) {
    const std::unique_ptr<Scheduler> scheduler = make(kOptions);
    SCOPED_TRACE(scheduler->name());
    const Outcome outcome = Simulate(mixed, *scheduler, kCosts);
    if (scheduler->name() == "Attendant") {
      ExpectComplete(mixed, outcome, kOptions.max_batch_tokens);
    } else {
      int64_t sequences = 0;
      for (const SimulatedBatch& batch : outcome.batches) {
        EXPECT_LE(batch.computed.tokens, kOptions.max_batch_tokens);
        sequences += batch.computed.sequences;
      }
      EXPECT_EQ(sequences, 306);
    }
  }
}

// Light other traffic: what waits, waits for the large request.
TEST_P(SchedulerTest, OthersWaitAtMostTwoFullBatchesBesideOneLargeRequest) {
  const Trace trace =
      Merge(MixedTrace(200, 60, GetParam()), {Whale(TraceStart() + absl::Milliseconds(300))});
  const Outcome outcome = Serve(trace);
  ExpectComplete(trace, outcome, kOptions.max_batch_tokens);
  for (size_t i = 0; i < trace.size(); ++i) {
    if (trace[i].lens.size() == 1) {
      EXPECT_LE(outcome.fates[i].wait, 2 * FullBatch(64)) << i;
    }
  }
}

// A short request never waits for more than the batch that runs and one that begins with a long
// sequence, as long as short ones are few.
TEST_P(SchedulerTest, AFloodOfLongSequencesDelaysShortOnesByTwoBatchesAtMost) {
  const Trace trace =
      Merge(UniformTrace(500, 120, 512, GetParam()), UniformTrace(100, 24, 64, GetParam() + 100));
  const Outcome outcome = Serve(trace);
  for (size_t i = 0; i < trace.size(); ++i) {
    if (trace[i].lens.front() == 64) {
      EXPECT_LE(outcome.fates[i].wait, 2 * FullBatch(512)) << i;
    }
  }
}

// More real texts than the server can do: short ones are most of what waits, and long ones have
// their turns among them.
TEST_P(SchedulerTest, AmongManyShortSequencesLongOnesDoNotFallBehind) {
  const Trace trace = RealTextsTrace(4000, 4000, GetParam());
  const Outcome outcome = Serve(trace);
  const auto median = [&](int64_t above) {
    return Percentile(
        Latencies(trace, outcome,
                  [above](const Arrival& arrival) { return arrival.tokens() > above; }),
        0.5);
  };
  EXPECT_LE(median(256), 1.2 * median(0));
}

// A client that asks for more than all does not keep others waiting: their requests wait for the
// batch that runs, and for the next one, in which its turn of a quarter comes before theirs.
TEST_P(SchedulerTest, AClientThatFloodsTheQueueDelaysOthersByTwoBatchesAtMost) {
  Trace flood = UniformTrace(8000, 3000, 64, GetParam());
  for (Arrival& arrival : flood) arrival.client = 1;
  Trace others = UniformTrace(150, 60, 64, GetParam() + 100);
  for (size_t i = 0; i < others.size(); ++i) others[i].client = 2 + i;
  const Trace trace = Merge(flood, others);
  const Outcome outcome = Serve(trace);
  ExpectComplete(trace, outcome, kOptions.max_batch_tokens);
  absl::Duration longest;
  for (size_t i = 0; i < trace.size(); ++i) {
    if (trace[i].client == 1) {
      longest = std::max(longest, outcome.fates[i].wait);
    } else {
      EXPECT_LE(outcome.fates[i].wait, 2 * FullBatch(64)) << i;
    }
  }
  EXPECT_GT(longest, 20 * FullBatch(64)) << "it is a flood";
}

// Overload of the higher priority: the lower one is served, at a quarter of each batch.
TEST_P(SchedulerTest, LowerPrioritiesDoNotStarve) {
  Trace background = UniformTrace(20, 1000, 64, GetParam());
  for (Arrival& arrival : background) arrival.priority = -1;
  const Trace trace = Merge(MixedTrace(6000, 1500, GetParam()), background);
  const Outcome outcome = Serve(trace);
  for (size_t i = 0; i < trace.size(); ++i) {
    if (trace[i].priority < 0) {
      EXPECT_LE(outcome.fates[i].wait, absl::Seconds(1) + 22 * FullBatch(512)) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SchedulerTest, testing::Values(1, 2, 3));

TEST(ClosedLoopTest, AClientSendsWhenItHasItsAnswer) {
  constexpr size_t kClients = 3;
  constexpr absl::Duration kPause = absl::Milliseconds(2);
  Trace trace = MixedTrace(50, 1, 1);
  const Outcome outcome =
      SimulateClosedLoop(kClients, kPause, trace, *MakeAttendant(kOptions), kCosts);
  std::vector<absl::Time> answers;
  for (size_t i = 0; i < trace.size(); ++i) {
    answers.push_back(trace[i].at + outcome.fates[i].latency);
  }
  std::sort(answers.begin(), answers.end());
  for (size_t i = 0; i < trace.size(); ++i) {
    EXPECT_EQ(trace[i].at, i < kClients ? TraceStart() : answers[i - kClients] + kPause) << i;
  }
}

TEST(PercentileTest, IsTheLeastThatEnoughDoNotExceed) {
  std::vector<absl::Duration> values;
  for (int i = 1; i <= 100; ++i) values.push_back(absl::Milliseconds(i));
  EXPECT_EQ(Percentile(values, 0.99), absl::Milliseconds(99));
  EXPECT_EQ(Percentile(values, 0.5), absl::Milliseconds(50));
  EXPECT_EQ(Percentile(values, 1), absl::Milliseconds(100));
  EXPECT_EQ(Percentile({}, 0.5), absl::ZeroDuration());
}

TEST(GoodputTest, RisesWithTheLimitAndStaysBelowWhatTheCostsAllow) {
  const auto make = [] { return MakeAttendant(kOptions); };
  const double strict = Goodput(make, kCosts, absl::Milliseconds(30), 2000, 1);
  const double loose = Goodput(make, kCosts, absl::Milliseconds(200), 2000, 1);
  EXPECT_GT(strict, 0);
  EXPECT_GT(loose, strict);
  EXPECT_LT(loose, 2 * 1000 / (kCosts.token_ms * 56));
}

}  // namespace
}  // namespace attendant::bench
