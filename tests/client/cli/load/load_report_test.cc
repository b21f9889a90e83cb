// SPDX-License-Identifier: Apache-2.0
#include "client/cli/load/load_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/cli/load/cost_meter.h"
#include "client/cli/load/live_view.h"

namespace attendant::client {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(ShortDurationTest, DurationsHaveThreeDigitsThatMatter) {
  EXPECT_EQ(ShortDuration(absl::ZeroDuration()), "0 s");
  EXPECT_EQ(ShortDuration(absl::Nanoseconds(1234)), "1.23 us");
  EXPECT_EQ(ShortDuration(absl::Microseconds(999)), "999 us");
  EXPECT_EQ(ShortDuration(absl::Nanoseconds(999900)), "1.00 ms");
  EXPECT_EQ(ShortDuration(absl::Microseconds(12345)), "12.3 ms");
  EXPECT_EQ(ShortDuration(absl::Milliseconds(123456)), "123 s");
}

class LoadReportTest : public ::testing::Test {
 protected:
  LoadReportTest() {
    result_.description = {.protocol = "attendant.v1",
                           .server = "host:1",
                           .model = "toy",
                           .payload = "one text",
                           .plan = {.requests_per_s = 200,
                                    .max_outstanding = 50,
                                    .connections = 2,
                                    .warmup = absl::Seconds(1),
                                    .duration = absl::Seconds(9)}};
    result_.cost = {.cpu_s = 1.25, .wall_s = 10, .processors = 2};
    LoadSummary& summary = result_.summary;
    summary.window = absl::Seconds(9);
    summary.ok = 12345;
    summary.failed = 2;
    summary.not_sent = 7;
    summary.requests_per_s = 1371.6;
    summary.sequences_per_s = 1371.6;
    summary.response.p99 = absl::Microseconds(12345);
    summary.service.p99 = absl::Microseconds(11111);
    summary.errors["RESOURCE_EXHAUSTED"] = {.count = 2,
                                            .first_message = "the queue\nis full",
                                            .p50 = absl::Milliseconds(1),
                                            .p99 = absl::Milliseconds(2),
                                            .max = absl::Milliseconds(3)};
  }

  std::string Moment(const LoadSummary& summary, absl::Duration now) const {
    return absl::StrJoin(
        FormatMoment(result_.description.plan,
                     {.now = now, .summary = summary, .requests_per_s = 1234, .outstanding = 16}),
        "\n");
  }

  LoadResult result_;
};

TEST_F(LoadReportTest, TableTellsEverything) {
  const std::string report = FormatReport(result_);
  EXPECT_THAT(report, HasSubstr("open loop, 200 requests/s at random times on 2 connections"));
  EXPECT_THAT(report, HasSubstr("12,345 ok, 2 failed, 7 not sent (50 were outstanding)"));
  EXPECT_THAT(report, HasSubstr("1,372 requests/s"));
  EXPECT_THAT(report, HasSubstr("unknown tokens/s"));
  EXPECT_THAT(report, HasSubstr("response time  0 s   0 s  0 s  12.3 ms"));
  EXPECT_THAT(report, HasSubstr("service time   0 s   0 s  0 s  11.1 ms"));
  EXPECT_THAT(report, HasSubstr("1.25 CPU seconds in 10.00 s"));
  EXPECT_THAT(report, Not(HasSubstr("warning")));
  EXPECT_THAT(report,
              HasSubstr("RESOURCE_EXHAUSTED 2, after p50 1.00 ms   p99 2.00 ms   max 3.00 ms, the "
                        "first: the queue is full"));
}

TEST_F(LoadReportTest, TellsWhatWasSentAgainAndThatItWasInterrupted) {
  EXPECT_THAT(FormatReport(result_), Not(HasSubstr("sent again")));
  result_.summary.resent = 1234;
  result_.summary.interrupted = true;
  EXPECT_THAT(FormatReport(result_), HasSubstr(", 1,234 sent again on a new connection in 9.00 s"));
  EXPECT_THAT(FormatReport(result_), HasSubstr("1.00 s of warm-up, interrupted\n"));
}

TEST_F(LoadReportTest, TellsTheVersionThatWasAskedFor) {
  EXPECT_THAT(FormatReport(result_), HasSubstr("at host:1, model toy\n"));
  result_.description.model_version = 2;
  EXPECT_THAT(FormatReport(result_), HasSubstr("at host:1, model toy, version 2\n"));
}

TEST_F(LoadReportTest, ANameOfTheServersDoesNotReachTheTerminal) {
  result_.description.model = "toy\x1b[2J";
  EXPECT_THAT(FormatReport(result_), HasSubstr("model toy [2J\n"));
}

TEST_F(LoadReportTest, WarnsWhenTheClientWasTheBottleneck) {
  result_.summary.send_lag.p99 = absl::Milliseconds(5);
  EXPECT_THAT(FormatReport(result_), HasSubstr("warning      the client was the bottleneck: 1 %"));
}

TEST_F(LoadReportTest, AFullThreadIsABottleneckOnManyProcessors) {
  result_.cost = {.cpu_s = 10, .busiest_thread_s = 8.5, .wall_s = 10, .processors = 16};
  EXPECT_EQ(ClientBottleneck(result_), "");
  result_.cost.busiest_thread_s = 9.5;
  EXPECT_THAT(ClientBottleneck(result_),
              HasSubstr("a thread of the load generator was busy for 95 %"));
}

TEST(CostMeterTest, KnowsTheBusiestThread) {
  const CostMeter meter;
  ClientCost cost;
  while ((cost = meter.Cost(absl::Seconds(1))).busiest_thread_s == 0) {
  }
  EXPECT_LE(cost.busiest_thread_s, cost.cpu_s + 0.02);  // it counts ticks of 10 ms
}

TEST_F(LoadReportTest, ASweepWarnsOfEachLoadThatTheClientSpoilt) {
  std::vector<LoadResult> results(3, result_);
  EXPECT_EQ(SweepWarnings(results), "");
  results[1].summary.send_lag.p99 = absl::Milliseconds(5);
  results[1].description.plan.requests_per_s = 4000;
  const std::string warnings = SweepWarnings(results);
  EXPECT_THAT(warnings, StartsWith("warning  at 4,000 requests/s the client was the bottleneck: "));
  EXPECT_THAT(warnings, EndsWith("\n"));
  EXPECT_EQ(std::count(warnings.begin(), warnings.end(), '\n'), 1);
}

TEST_F(LoadReportTest, DescribesEveryKindOfArrivals) {
  LoadPlan plan = result_.description.plan;
  plan.arrivals = {.kind = Arrivals::Kind::kConstant};
  EXPECT_THAT(DescribePlan(plan), HasSubstr("200 requests/s evenly on"));
  plan.arrivals = {.kind = Arrivals::Kind::kBursts, .burst = 8};
  EXPECT_THAT(DescribePlan(plan), HasSubstr("200 requests/s in bursts of 8 at random times"));
  plan.requests_per_s = 0;
  EXPECT_EQ(DescribePlan(plan), "closed loop, 2 connections x 25 outstanding");
}

TEST_F(LoadReportTest, AMomentGoesFromNothingToAll) {
  EXPECT_THAT(Moment({}, absl::ZeroDuration()), HasSubstr("   0 %  0  warming up"));
  const std::string half = Moment(result_.summary, absl::Seconds(5));
  EXPECT_THAT(half, HasSubstr("[===============>              ]  50 %  5s"));
  EXPECT_THAT(half, HasSubstr("1,234 requests/s, 1,372 on average, 16 in flight"));
  EXPECT_THAT(half, HasSubstr("p99 12.3 ms"));
  EXPECT_THAT(half, HasSubstr("RESOURCE_EXHAUSTED 2  not sent 7"));
  EXPECT_THAT(Moment(result_.summary, absl::Seconds(50)), HasSubstr("100 %"));
}

}  // namespace
}  // namespace attendant::client
