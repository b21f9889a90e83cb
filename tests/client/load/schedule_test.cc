// SPDX-License-Identifier: Apache-2.0
#include "client/load/schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/load/interval_series.h"
#include "client/load/payload.h"
#include "client/load/trace.h"

namespace attendant::client {
namespace {

TEST(ScheduleTest, ConstantArrivalsAreEven) {
  const auto schedule = MakeSchedule({.kind = Arrivals::Kind::kConstant}, 200, 1);
  for (int i = 1; i <= 1000; ++i) {
    EXPECT_NEAR(absl::ToDoubleSeconds(*schedule->Next()), i * 0.005, 1e-9);
  }
}

TEST(ScheduleTest, BurstsComeTogether) {
  const auto schedule = MakeSchedule({.kind = Arrivals::Kind::kBursts, .burst = 5}, 100, 1);
  std::set<absl::Duration> times;
  for (int i = 0; i < 500; ++i) {
    times.insert(*schedule->Next());
    EXPECT_EQ(times.size(), static_cast<size_t>(i / 5 + 1));
  }
}

TEST(IntervalSeriesTest, MergesNeighboursWhenItGrowsTooLong) {
  IntervalSeries series;
  for (int64_t second = 0; second < 1000; ++second) {
    Interval& interval = series.At(absl::Seconds(second));
    ++interval.offered;
    interval.failed += 2;
    interval.finished += 3;
    interval.response_ns.Record(second);
  }
  EXPECT_EQ(series.length(), absl::Seconds(8));
  ASSERT_EQ(series.intervals().size(), 125);
  for (const Interval& interval : series.intervals()) {
    EXPECT_EQ(interval.offered, 8);
    EXPECT_EQ(interval.failed, 2 * 8);
    EXPECT_EQ(interval.finished, 3 * 8);
    EXPECT_EQ(interval.response_ns.count(), 8);
  }
  EXPECT_EQ(series.intervals()[1].response_ns.min(), 8);
}

absl::StatusOr<std::vector<TraceEntry>> Read(const std::string& text) {
  std::istringstream in(text);
  return ReadTrace(in);
}

TEST(TraceTest, ReadsTimestampsInAnyOrder) {
  const auto trace = Read(R"({"timestamp": 1500, "text_input": "some text"}
{"timestamp": 1000.5, "input_length": 48, "output_length": 3}

)");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->size(), 2);
  EXPECT_EQ((*trace)[0].time, absl::ZeroDuration());
  EXPECT_EQ((*trace)[0].tokens, 48);
  EXPECT_EQ((*trace)[1].time, absl::Microseconds(499500));
  EXPECT_EQ((*trace)[1].text, "some text");
}

TEST(TraceTest, ReadsAnAccessLogWithoutWhatComputedNothing) {
  const auto trace = Read(
      R"({"time":"2026-11-22T09:00:01.5Z","code":"OK","sequences":3,"tokens":10}
{"time":"2026-11-22T09:00:01.6Z","code":"RESOURCE_EXHAUSTED","sequences":0,"tokens":0}
{"time":"2026-11-22T09:00:01.25Z","code":"OK","sequences":1,"tokens":7}
)");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->size(), 2);
  EXPECT_EQ((*trace)[0].tokens, 7);
  EXPECT_EQ((*trace)[1].time, absl::Milliseconds(250));
  EXPECT_EQ((*trace)[1].sequences, 3);
}

TEST(TraceTest, RefusesWhatIsNone) {
  for (const char* text :
       {"", "\n", "hello\n", "[]\n", "{}\n", R"({"timestamp": 1})",
        R"({"timestamp": -1, "input_length": 5})", R"({"timestamp": "x", "input_length": 5})",
        R"({"timestamp": 1, "input_length": 0})", R"({"timestamp": 1, "input_length": 99999999})",
        R"({"time": "yesterday", "tokens": 5})", R"({"time": "2026-11-22T09:00:01Z"})",
        R"({"time": "infinite-future", "tokens": 5})", R"({"time": "infinite-past", "tokens": 5})",
        "{\"timestamp\": 1, \"text_input\": \"\xff\"}"}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(Read(text).status())) << text;
  }
}

TEST(TraceTest, RefusesTimesThatNoLoadReaches) {
  const std::string now = R"({"time": "2026-11-22T09:00:01Z", "tokens": 5})";
  for (const char* time : {"infinite-future", "infinite-past", "1970-01-01T00:00:00Z"}) {
    const std::string other = absl::StrCat(R"({"time": ")", time, R"(", "tokens": 5})");
    const auto trace = Read(absl::StrCat(now, "\n", other, "\n"));
    EXPECT_EQ(trace.status(), absl::FailedPreconditionError(
                                  "line 2 of the trace has a time that is more than 31 years from "
                                  "the first"))
        << time;
  }
  EXPECT_TRUE(
      Read(absl::StrCat(now, "\n", R"({"time": "1996-01-01T00:00:00Z", "tokens": 5})")).ok());
}

TEST(TraceTest, PayloadsHaveItsLengthsUpToTheLimit) {
  PayloadSpec spec;
  spec.trace = *Read(R"({"timestamp": 0, "input_length": 30}
{"timestamp": 1, "text_input": "words"}
{"timestamp": 2, "input_length": 500}
)");
  spec.trace[0].sequences = 4;
  spec.lengths = *LengthDistribution::Parse("uniform:1:64");
  const std::vector<Payload> payloads = MakePayloads(spec);
  ASSERT_EQ(payloads.size(), 3);
  std::multiset<size_t> lens;
  for (const std::vector<int32_t>& ids : payloads[0].ids) lens.insert(ids.size());
  EXPECT_EQ(lens, (std::multiset<size_t>{7, 7, 8, 8}));
  EXPECT_EQ(payloads[1].texts, std::vector<std::string>{"words"});
  EXPECT_EQ(payloads[2].ids[0].size(), 64);
}

}  // namespace
}  // namespace attendant::client
