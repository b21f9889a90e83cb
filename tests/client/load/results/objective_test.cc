// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "client/load/results/rate_search.h"

namespace attendant::client {
namespace {

using ::testing::HasSubstr;

// 100 requests of 1 to 100 ms, two of them failed; service times are half of that.
LoadResult Result() {
  LoadResult result;
  for (int64_t ms = 1; ms <= 100; ++ms) {
    result.detail.response_ns.Record(ms * 1000000);
    result.detail.service_ns.Record(ms * 500000);
  }
  result.summary.ok = 100;
  result.summary.failed = 2;
  result.summary.requests_per_s = 50;
  return result;
}

bool Holds(absl::string_view text, const LoadResult& result = Result()) {
  const absl::StatusOr<Condition> condition = Condition::Parse(text);
  EXPECT_TRUE(condition.ok()) << condition.status();
  return condition.ok() && condition->Holds(result);
}

TEST(ConditionTest, ComparesEveryFigure) {
  EXPECT_TRUE(Holds("p99>98ms"));
  EXPECT_FALSE(Holds("p99>100ms"));
  EXPECT_TRUE(Holds("p99<=100ms"));
  EXPECT_TRUE(Holds("max>=100ms"));
  EXPECT_FALSE(Holds("max<100ms"));
  EXPECT_TRUE(Holds("p12.5<14ms"));
  EXPECT_TRUE(Holds("mean>50ms"));
  EXPECT_FALSE(Holds("service.mean>50ms"));
  EXPECT_TRUE(Holds("service.p99<50ms"));
  EXPECT_TRUE(Holds("error_rate>1%"));
  EXPECT_FALSE(Holds("error_rate>0.02"));
  EXPECT_TRUE(Holds("requests_per_s<100"));
}

// A server that is so slow that requests are not even sent must not look fast.
TEST(ConditionTest, RequestsThatWereNotSentTakeForEver) {
  LoadResult result = Result();
  result.summary.not_sent = 100;
  EXPECT_FALSE(Holds("p25>51ms", result));
  EXPECT_TRUE(Holds("p49>90ms", result));
  EXPECT_TRUE(Holds("p51>24h", result));
  EXPECT_TRUE(Holds("mean>24h", result));
  EXPECT_TRUE(Holds("error_rate>=50%", result));
}

// Nor a server that answers the quick ones and lets the others run into their deadline.
TEST(ConditionTest, RequestsThatPassTheirDeadlineTakeForEver) {
  LoadResult result = Result();
  result.summary.failed = 2;
  result.summary.errors["DEADLINE_EXCEEDED"].count = 2;
  EXPECT_TRUE(Holds("p99>24h", result));
  EXPECT_TRUE(Holds("service.p99>24h", result));
  EXPECT_TRUE(Holds("mean>24h", result));
  EXPECT_FALSE(Holds("p98>101ms", result));
  EXPECT_THAT(Condition::Parse("p99>1s")->Describe(result), HasSubstr("passed their deadline"));
  result.summary.not_sent = 100;
  EXPECT_TRUE(Holds("p49.6>24h", result)) << "102 of 202";
  EXPECT_FALSE(Holds("p49.4>24h", result));
}

// A refusal is an answer; error_rate bounds them.
TEST(ConditionTest, OtherFailuresAreInNoLatency) {
  LoadResult result = Result();
  result.summary.errors["RESOURCE_EXHAUSTED"].count = 2;
  EXPECT_FALSE(Holds("max>100.1ms", result));
  EXPECT_TRUE(Holds("error_rate>1%", result));
}

TEST(ConditionTest, AnUnknownFigureHoldsNothing) {
  const LoadResult none{};
  for (const char* text : {"p99>0s", "p99<1h", "tokens_per_s<1", "tokens_per_s>=0", "mean<1h"}) {
    EXPECT_FALSE(Holds(text, none)) << text;
    EXPECT_FALSE(Condition::Parse(text)->IsKnown(none)) << text;
  }
  EXPECT_EQ(Condition::Parse("p99>0s")->Describe(none), "p99 is unknown");
  EXPECT_THAT(Condition::Parse("p50>0s")->Describe(Result()), HasSubstr("p50 is 49.99 ms"));
  EXPECT_THAT(Condition::Parse("error_rate>1%")->Describe(Result()), HasSubstr("1.96 %"));
}

TEST(ConditionTest, RefusesWhatItCannotRead) {
  for (const char* text : {"", "p99", "p99=50ms", ">50ms", "p99>", "p99>50", "p99>-1ms", "p0>1ms",
                           "p100>1ms", "pxx>1ms", "p99ms>1ms", "error_rate>x", "error_rate>200%",
                           "requests_per_s<fast", "requests_per_s<-1", "q99>1ms"}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(Condition::Parse(text).status())) << text;
  }
}

TEST(ConditionTest, AnObjectiveIsAnUpperBound) {
  for (const char* text : {"p99=100ms", "p99<=100ms", "p99<100ms", "error_rate=2%"}) {
    const auto objective = Condition::ParseObjective(text);
    ASSERT_TRUE(objective.ok()) << objective.status();
    EXPECT_TRUE(objective->Holds(Result())) << text;
    EXPECT_EQ(objective->bounds_errors(), text[0] == 'e');
  }
  EXPECT_FALSE(Condition::ParseObjective("p99=98ms")->Holds(Result()));
  for (const char* text : {"p99", "p99>50ms", "requests_per_s=100", "=50ms"}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(Condition::ParseObjective(text).status())) << text;
  }
}

TEST(BottleneckTest, IsTheClientThatSendsLate) {
  LoadResult result = Result();
  result.summary.response.p99 = absl::Milliseconds(100);
  result.summary.send_lag.p99 = absl::Milliseconds(10);
  EXPECT_EQ(ClientBottleneck(result), "") << "a tenth";
  result.summary.send_lag.p99 = absl::Milliseconds(11);
  EXPECT_THAT(ClientBottleneck(result), HasSubstr("11ms late"));
  result.summary.response.p99 = result.summary.send_lag.p99 = absl::Microseconds(900);
  EXPECT_EQ(ClientBottleneck(result), "") << "below a millisecond";
}

TEST(BottleneckTest, IsTheClientWithoutProcessors) {
  LoadResult result = Result();
  result.cost = {.cpu_s = 17.9, .wall_s = 10, .processors = 2};
  EXPECT_EQ(ClientBottleneck(result), "");
  result.cost.cpu_s = 18.1;
  EXPECT_THAT(ClientBottleneck(result), HasSubstr("91 % of its 2 processors"));
  result.cost = {.cpu_s = 1.9, .wall_s = 0.95, .processors = 2};
  EXPECT_EQ(ClientBottleneck(result), "") << "too short to tell";
}

// A server that keeps the objective up to `limit`; returns the rate found.
double Search(double first, double limit, int* steps) {
  RateSearch search(first);
  for (*steps = 0; !search.done(); ++*steps) search.Report(search.rate() <= limit);
  return search.best();
}

TEST(RateSearchTest, FindsTheLimitFromBelowAndAbove) {
  for (double first : {10.0, 1000.0, 99999.0}) {
    int steps = 0;
    const double found = Search(first, 777, &steps);
    EXPECT_LE(found, 777);
    EXPECT_GE(found, 777 / RateSearch::kPrecision);
    EXPECT_LE(steps, 16);
  }
}

TEST(RateSearchTest, EndsWhenNothingAndWhenEverythingIsKept) {
  int steps = 0;
  EXPECT_EQ(Search(10, 0, &steps), 0);
  EXPECT_LE(steps, 8);
  EXPECT_GT(Search(10, std::numeric_limits<double>::infinity(), &steps),
            RateSearch::kHighestRate / 2);
  EXPECT_LE(steps, 18);
}

}  // namespace
}  // namespace attendant::client
