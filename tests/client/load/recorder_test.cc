// SPDX-License-Identifier: Apache-2.0
#include "client/load/recorder.h"

#include <gtest/gtest.h>

namespace attendant::client {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);

CallResult Ok() { return {.sequences = 2, .tokens = 10}; }

TEST(RecorderTest, LatencyRunsFromTheIntendedTime) {
  Recorder recorder(absl::ZeroDuration(), 10 * kSecond);
  recorder.Sent(1 * kSecond, 3 * kSecond);  // the generator was late by two seconds
  recorder.Finished(1 * kSecond, 4 * kSecond, Ok());
  const LoadSummary summary = recorder.Summarize(10 * kSecond);
  EXPECT_EQ(summary.ok, 1);
  EXPECT_NEAR(absl::ToDoubleSeconds(summary.p50), 3, 0.02);
  EXPECT_EQ(summary.max_send_lag, 2 * kSecond);
}

// A server slower than the rate answers after the window what was intended inside it.
TEST(RecorderTest, ThroughputCountsWhatFinishedInsideTheWindow) {
  Recorder recorder(2 * kSecond, 4 * kSecond);
  recorder.Finished(1 * kSecond, 3 * kSecond, Ok());  // intended during the warm-up
  recorder.Finished(2 * kSecond, 3 * kSecond, Ok());
  recorder.Finished(3 * kSecond, 4 * kSecond, Ok());  // the window's end is outside it
  recorder.Finished(3 * kSecond, 9 * kSecond, Ok());
  const LoadSummary summary = recorder.Summarize(10 * kSecond);
  EXPECT_EQ(summary.window, 2 * kSecond);
  EXPECT_EQ(summary.ok, 3) << "intended inside the window";
  EXPECT_DOUBLE_EQ(summary.requests_per_s, 1) << "two finished inside two seconds";
  EXPECT_DOUBLE_EQ(summary.sequences_per_s, 2);
  EXPECT_DOUBLE_EQ(*summary.tokens_per_s, 10);
}

TEST(RecorderTest, AnEndlessWindowEndsWithTheLastRequest) {
  Recorder recorder(1 * kSecond, absl::InfiniteDuration());
  recorder.Finished(1 * kSecond, 2 * kSecond, Ok());
  recorder.Finished(2 * kSecond, 5 * kSecond, Ok());
  EXPECT_EQ(recorder.Summarize(100 * kSecond).window, 4 * kSecond);
}

TEST(RecorderTest, WhatRunsAtAnInterruptIsCutOffAndCountsNowhereElse) {
  Recorder recorder(2 * kSecond, 10 * kSecond);
  recorder.Finished(2 * kSecond, 3 * kSecond, Ok());
  recorder.Interrupt(4 * kSecond);
  recorder.Finished(3 * kSecond, 5 * kSecond, Ok());
  recorder.Finished(1 * kSecond, 5 * kSecond, Ok());  // of the warm-up
  recorder.NotSent(3 * kSecond);                      // told late
  const LoadSummary summary = recorder.Summarize(6 * kSecond);
  EXPECT_EQ(summary.ok, 1);
  EXPECT_EQ(summary.cut_off, 1);
  EXPECT_EQ(summary.not_sent, 0);
  EXPECT_EQ(summary.window, 2 * kSecond);
}

TEST(RecorderTest, AnInterruptDuringTheWarmUpCutsNothingOff) {
  Recorder recorder(2 * kSecond, 10 * kSecond);
  recorder.Interrupt(1 * kSecond);
  recorder.Finished(1 * kSecond, 3 * kSecond, Ok());
  const LoadSummary summary = recorder.Summarize(3 * kSecond);
  EXPECT_EQ(summary.cut_off, 0);
  EXPECT_EQ(summary.window, absl::ZeroDuration());
}

TEST(RecorderTest, ErrorsCountByCodeWithTheirFirstMessage) {
  Recorder recorder(absl::ZeroDuration(), 10 * kSecond);
  for (const char* message : {"first", "second"}) {
    recorder.Finished(kSecond, 2 * kSecond,
                      {.code = grpc::StatusCode::RESOURCE_EXHAUSTED, .message = message});
  }
  const LoadSummary summary = recorder.Summarize(10 * kSecond);
  EXPECT_EQ(summary.failed, 2);
  EXPECT_EQ(summary.ok, 0);
  EXPECT_EQ(summary.requests_per_s, 0);
  EXPECT_EQ(summary.errors.at("RESOURCE_EXHAUSTED").count, 2);
  EXPECT_EQ(summary.errors.at("RESOURCE_EXHAUSTED").first_message, "first");
  EXPECT_EQ(summary.errors.at("RESOURCE_EXHAUSTED").max, kSecond);
  EXPECT_EQ(summary.max, absl::ZeroDuration()) << "of the requests that went well";
}

}  // namespace
}  // namespace attendant::client
