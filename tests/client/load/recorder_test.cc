// SPDX-License-Identifier: Apache-2.0
#include "client/load/recorder.h"

#include <gtest/gtest.h>

#include <vector>

namespace attendant::client {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);

CallResult Ok() { return {.sequences = 2, .tokens = 10}; }

// Sent when it should be.
CallTimes Times(absl::Duration intended, absl::Duration finished) {
  return {.intended = intended, .sent = intended, .finished = finished};
}

TEST(RecorderTest, ResponseTimeRunsFromTheIntendedTimeAndServiceTimeFromTheSending) {
  Recorder recorder(absl::ZeroDuration(), 10 * kSecond);
  recorder.Sent(1 * kSecond, 3 * kSecond);  // the generator was late by two seconds
  recorder.Finished({.intended = 1 * kSecond, .sent = 3 * kSecond, .finished = 4 * kSecond}, Ok());
  const LoadSummary summary = recorder.Summarize(10 * kSecond);
  EXPECT_EQ(summary.ok, 1);
  EXPECT_NEAR(absl::ToDoubleSeconds(summary.response.p50), 3, 0.002);
  EXPECT_NEAR(absl::ToDoubleSeconds(summary.service.p50), 1, 0.001);
  EXPECT_EQ(summary.send_lag.max, 2 * kSecond);
}

// Latency and failures belong to the interval in which a request was due, throughput to that of its
// answer.
TEST(RecorderTest, TheSeriesFollowsTheLoad) {
  Recorder recorder(1 * kSecond, 5 * kSecond);
  recorder.Finished(Times(1 * kSecond, 3 * kSecond), Ok());
  recorder.Finished(Times(2 * kSecond, 3 * kSecond),
                    {.code = grpc::StatusCode::INTERNAL, .message = "broken"});
  recorder.NotSent(2 * kSecond);
  const LoadDetail detail = recorder.Detail();
  const std::vector<Interval>& intervals = detail.series.intervals();
  ASSERT_EQ(intervals.size(), 3);
  EXPECT_EQ(intervals[0].offered, 1);
  EXPECT_EQ(intervals[0].response_ns.count(), 1);
  EXPECT_EQ(intervals[0].finished, 0);
  EXPECT_EQ(intervals[1].offered, 2);
  EXPECT_EQ(intervals[1].failed, 2);
  EXPECT_EQ(intervals[2].finished, 1);
  EXPECT_EQ(detail.response_ns.count(), 1);
}

TEST(RecorderTest, ACopyOfTheSeriesFollowsIt) {
  Recorder recorder(0 * kSecond, 1000 * kSecond);
  IntervalSeries copy;
  for (const int second : {3, 100, 3, 700}) {  // with the last one neighbours become one
    recorder.Finished(Times(second * kSecond, second * kSecond), Ok());
    recorder.CopySeries(copy);
    const IntervalSeries series = recorder.Detail().series;
    EXPECT_EQ(copy.length(), series.length());
    ASSERT_EQ(copy.intervals().size(), series.intervals().size());
    for (size_t i = 0; i < series.intervals().size(); ++i) {
      EXPECT_EQ(copy.intervals()[i].offered, series.intervals()[i].offered) << i;
      EXPECT_EQ(copy.intervals()[i].response_ns.count(), series.intervals()[i].response_ns.count());
    }
  }
}

TEST(RecorderTest, TheObserverSeesAllButWhatIsCutOff) {
  std::vector<absl::Duration> seen;
  Recorder recorder(2 * kSecond, 4 * kSecond, [&](const CallTimes& times, const CallResult&) {
    seen.push_back(times.finished);
  });
  recorder.Finished(Times(1 * kSecond, 2 * kSecond), Ok());  // of the warm-up
  recorder.Finished(Times(2 * kSecond, 3 * kSecond), Ok());
  recorder.Interrupt(4 * kSecond);
  recorder.Finished(Times(3 * kSecond, 5 * kSecond), Ok());
  EXPECT_EQ(seen, (std::vector<absl::Duration>{2 * kSecond, 3 * kSecond}));
}

// A server slower than the rate answers after the window what was intended inside it.
TEST(RecorderTest, ThroughputCountsWhatFinishedInsideTheWindow) {
  Recorder recorder(2 * kSecond, 4 * kSecond);
  recorder.Finished(Times(1 * kSecond, 3 * kSecond), Ok());  // intended during the warm-up
  recorder.Finished(Times(2 * kSecond, 3 * kSecond), Ok());
  recorder.Finished(Times(3 * kSecond, 4 * kSecond), Ok());  // the window's end is outside it
  recorder.Finished(Times(3 * kSecond, 9 * kSecond), Ok());
  const LoadSummary summary = recorder.Summarize(10 * kSecond);
  EXPECT_EQ(summary.window, 2 * kSecond);
  EXPECT_EQ(summary.ok, 3) << "intended inside the window";
  EXPECT_DOUBLE_EQ(summary.requests_per_s, 1) << "two finished inside two seconds";
  EXPECT_DOUBLE_EQ(summary.sequences_per_s, 2);
  EXPECT_DOUBLE_EQ(*summary.tokens_per_s, 10);
}

TEST(RecorderTest, CountsWhatWasSentAgainForTheWindow) {
  Recorder recorder(2 * kSecond, 4 * kSecond);
  recorder.Finished(Times(1 * kSecond, 3 * kSecond), {.resent = 1});
  recorder.Finished(Times(2 * kSecond, 3 * kSecond), {.resent = 2});
  recorder.Finished(Times(2 * kSecond, 3 * kSecond), Ok());
  EXPECT_EQ(recorder.Summarize(4 * kSecond).resent, 2);
}

TEST(RecorderTest, AnEndlessWindowEndsWithTheLastRequest) {
  Recorder recorder(1 * kSecond, absl::InfiniteDuration());
  recorder.Finished(Times(1 * kSecond, 2 * kSecond), Ok());
  recorder.Finished(Times(2 * kSecond, 5 * kSecond), Ok());
  EXPECT_EQ(recorder.Summarize(100 * kSecond).window, 4 * kSecond);
}

// As when all --requests are answered before --duration is over.
TEST(RecorderTest, AWindowThatIsNotOverEndsWithTheLastRequest) {
  Recorder recorder(1 * kSecond, 100 * kSecond);
  recorder.Finished(Times(1 * kSecond, 2 * kSecond), Ok());
  recorder.Finished(Times(2 * kSecond, 5 * kSecond), Ok());
  const LoadSummary summary = recorder.Summarize(9 * kSecond);
  EXPECT_EQ(summary.window, 4 * kSecond);
  EXPECT_DOUBLE_EQ(summary.requests_per_s, 0.5);
}

TEST(RecorderTest, WhatRunsAtAnInterruptIsCutOffAndCountsNowhereElse) {
  Recorder recorder(2 * kSecond, 10 * kSecond);
  recorder.Finished(Times(2 * kSecond, 3 * kSecond), Ok());
  recorder.Interrupt(4 * kSecond);
  recorder.Finished(Times(3 * kSecond, 5 * kSecond), Ok());
  recorder.Finished(Times(1 * kSecond, 5 * kSecond), Ok());  // of the warm-up
  recorder.NotSent(3 * kSecond);                             // told late
  const LoadSummary summary = recorder.Summarize(6 * kSecond);
  EXPECT_EQ(summary.ok, 1);
  EXPECT_EQ(summary.cut_off, 1);
  EXPECT_EQ(summary.not_sent, 0);
  EXPECT_EQ(summary.window, 2 * kSecond);
}

TEST(RecorderTest, AnInterruptDuringTheWarmUpCutsNothingOff) {
  Recorder recorder(2 * kSecond, 10 * kSecond);
  recorder.Interrupt(1 * kSecond);
  recorder.Finished(Times(1 * kSecond, 3 * kSecond), Ok());
  const LoadSummary summary = recorder.Summarize(3 * kSecond);
  EXPECT_EQ(summary.cut_off, 0);
  EXPECT_EQ(summary.window, absl::ZeroDuration());
}

TEST(RecorderTest, ErrorsCountByCodeWithTheirFirstMessage) {
  Recorder recorder(absl::ZeroDuration(), 10 * kSecond);
  for (const char* message : {"first", "second"}) {
    recorder.Finished(Times(kSecond, 2 * kSecond),
                      {.code = grpc::StatusCode::RESOURCE_EXHAUSTED, .message = message});
  }
  const LoadSummary summary = recorder.Summarize(10 * kSecond);
  EXPECT_EQ(summary.failed, 2);
  EXPECT_EQ(summary.ok, 0);
  EXPECT_EQ(summary.requests_per_s, 0);
  EXPECT_EQ(summary.errors.at("RESOURCE_EXHAUSTED").count, 2);
  EXPECT_EQ(summary.errors.at("RESOURCE_EXHAUSTED").first_message, "first");
  EXPECT_EQ(summary.errors.at("RESOURCE_EXHAUSTED").max, kSecond);
  EXPECT_EQ(summary.response.max, absl::ZeroDuration()) << "of the requests that went well";
}

}  // namespace
}  // namespace attendant::client
