// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "client/load/random.h"
#include "client/load/results/batches.h"
#include "client/load/results/comparison.h"

namespace attendant::client {
namespace {

TEST(StatisticsTest, StudentAgreesWithTables) {
  EXPECT_NEAR(StudentLimit(1), 12.706, 0.001);
  EXPECT_NEAR(StudentLimit(4), 2.776, 0.001);
  EXPECT_NEAR(StudentLimit(6), 2.447, 0.003);
  EXPECT_NEAR(StudentLimit(9), 2.262, 0.003);
  EXPECT_NEAR(StudentLimit(30), 2.042, 0.002);
  EXPECT_NEAR(StudentLimit(1e6), 1.960, 0.001);
  EXPECT_NEAR(StudentLimit(4, Sure::kOfSix), 4.851, 0.001);
  EXPECT_NEAR(StudentLimit(6, Sure::kOfSix), 3.863, 0.02);
  EXPECT_NEAR(StudentLimit(10, Sure::kOfSix), 3.277, 0.003);
  EXPECT_NEAR(StudentLimit(1e6, Sure::kOfSix), 2.638, 0.001);
}

TEST(StatisticsTest, AMeanHasTheIntervalOfTheTextbook) {
  const std::vector<double> values = {9, 11, 10, 10, 10};
  const auto estimate = EstimateMean(values);
  ASSERT_TRUE(estimate.has_value());
  EXPECT_DOUBLE_EQ(estimate->value, 10);
  EXPECT_NEAR(estimate->half_width, 2.776 * std::sqrt(0.5) / std::sqrt(5), 1e-3);
  EXPECT_FALSE(EstimateMean(std::vector<double>{1, 2, 3, 4}).has_value());
}

// Of many pairs of equal samples at most 5 % look different, and of a pair that differs none do
// not.
TEST(StatisticsTest, ADifferenceIsFoundAsOftenAsPromised) {
  Random random(1);
  const auto sample = [&random](double mean) {
    std::vector<double> values(10);
    for (double& value : values) value = mean + random.Normal();
    return values;
  };
  int found = 0, found_of_six = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<double> a = sample(0), b = sample(0);
    const auto is_clear = [](const std::optional<Estimate>& difference) {
      return std::abs(difference->value) > difference->half_width ? 1 : 0;
    };
    found += is_clear(EstimateDifference(a, b));
    found_of_six += is_clear(EstimateDifference(a, b, Sure::kOfSix));
  }
  EXPECT_NEAR(found, 75, 50);
  EXPECT_LE(found_of_six, 25);
  const auto difference = EstimateDifference(sample(0), sample(10));
  EXPECT_NEAR(difference->value, 10, 2);
  EXPECT_LT(difference->half_width, 2);
}

// As the latencies of batches that share a long queue: without an allowance a quarter look
// different.
TEST(StatisticsTest, ValuesThatFollowOneAnotherTellLess) {
  Random random(2);
  const auto sample = [&random] {
    std::vector<double> values;
    double value = random.Normal();
    for (int i = 0; i < 10; ++i) values.push_back(value = 0.7 * value + 0.714 * random.Normal());
    return values;
  };
  int found = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto difference = EstimateDifference(sample(), sample(), Sure::kOfSix);
    found += std::abs(difference->value) > difference->half_width ? 1 : 0;
  }
  EXPECT_LE(found, 130);
}

TEST(StatisticsTest, EqualValuesHaveNoWidth) {
  const std::vector<double> values(6, 3.0);
  EXPECT_EQ(EstimateMean(values)->half_width, 0);
  EXPECT_EQ(EstimateDifference(values, values)->half_width, 0);
}

IntervalSeries Series(int64_t seconds, int64_t requests_per_s, int64_t response_ns) {
  IntervalSeries series;
  for (int64_t second = 0; second < seconds; ++second) {
    Interval& interval = series.At(absl::Seconds(second));
    interval.offered = requests_per_s + 1;
    interval.failed = 1;
    interval.finished = requests_per_s;
    for (int64_t i = 0; i < requests_per_s; ++i) interval.response_ns.Record(response_ns);
  }
  return series;
}

TEST(BatchesTest, AreTenOrMoreOfWholeIntervals) {
  // The last second of the window is not whole.
  const BatchFigures figures = BatchFiguresOf(Series(26, 300, 2000000), absl::Milliseconds(25500));
  ASSERT_EQ(figures.at("requests_per_s").size(), 12);
  for (const auto& [name, values] : figures) {
    const double expected = name == "requests_per_s" ? 300
                            : name == "error_rate"   ? 1. / 301
                                                     : 0.002;
    for (double value : values) EXPECT_NEAR(value, expected, 0.0005) << name;
  }
  EXPECT_EQ(figures.size(), 6);
}

TEST(BatchesTest, LeaveOutWhatTooFewRequestsCannotTell) {
  const BatchFigures figures = BatchFiguresOf(Series(10, 30, 1000), absl::Seconds(10));
  EXPECT_TRUE(figures.contains("p90"));
  EXPECT_FALSE(figures.contains("p99"));
  IntervalSeries pause = Series(20, 30, 1000);
  pause.At(absl::Seconds(4)) = pause.At(absl::Seconds(5)) = {};
  EXPECT_FALSE(BatchFiguresOf(pause, absl::Seconds(20)).contains("error_rate"));
  EXPECT_TRUE(BatchFiguresOf(IntervalSeries(), absl::Seconds(10)).empty());
}

nlohmann::ordered_json Report(double rate, double p50, int failed = 0) {
  nlohmann::ordered_json report{{"requests_per_s", rate}};
  report["requests"] = {{"ok", 100 - failed}, {"failed", failed - failed / 2}};
  report["requests"]["not_sent"] = failed / 2;
  for (const char* name : {"mean", "p50", "p90", "p99", "p99.9", "max"}) {
    report["latency_s"][name] = p50;
  }
  for (int i = 0; i < 10; ++i) {
    report["batches"]["error_rate"].push_back(0.01 * failed);
    report["batches"]["requests_per_s"].push_back(rate + i % 2);
    report["batches"]["p50"].push_back(p50 + 1e-5 * (i % 2));
  }
  return report;
}

TEST(ComparisonTest, TellsBetterFromWorse) {
  const auto figures = CompareReports(Report(100, 0.01), Report(200, 0.02));
  ASSERT_TRUE(figures.ok()) << figures.status();
  ASSERT_EQ(figures->size(), 8);
  EXPECT_EQ((*figures)[0].name, "requests_per_s");
  EXPECT_EQ((*figures)[0].change, Change::kBetter);
  EXPECT_NEAR((*figures)[0].difference->value, 1, 0.01);
  EXPECT_EQ((*figures)[3].name, "p50");
  EXPECT_EQ((*figures)[3].change, Change::kWorse);
  EXPECT_NEAR((*figures)[3].PercentOfA(), 100, 1);
  EXPECT_EQ((*figures)[5].change, Change::kUnknown) << "p99 has no batches";
  const auto same = CompareReports(Report(100, 0.01), Report(100, 0.01));
  EXPECT_EQ((*same)[0].change, Change::kUnclear);
}

TEST(ComparisonTest, TheRateOfAnOpenLoopIsNotJudged) {
  nlohmann::ordered_json a = Report(100, 0.01), b = Report(200, 0.02);
  a["loop"] = "open";
  EXPECT_EQ((*CompareReports(a, b))[0].change, Change::kNotJudged) << "B does not tell its loop";
  b["loop"] = "closed";
  EXPECT_TRUE(absl::IsFailedPrecondition(CompareReports(a, b).status()));
}

TEST(ComparisonTest, NamesTheSettingsThatDiffer) {
  nlohmann::ordered_json a = Report(100, 0.01);
  a["server"] = "one:1";
  a["model"] = "m";
  a["payload"] = "short";
  a["rate"] = 100;
  nlohmann::ordered_json b = a;
  b["server"] = "two:1";
  b["seed"] = 2;
  b["model_version"] = 2;
  EXPECT_TRUE(CompareSettings(a, b).empty()) << "older reports tell no version";
  a["model_version"] = 0;
  ASSERT_EQ(CompareSettings(a, b).size(), 1);
  EXPECT_EQ(CompareSettings(a, b)[0].name, "model_version");
  EXPECT_FALSE(CompareSettings(a, b)[0].is_load);
  b["model_version"] = 0;
  b["model"] = "n";
  b["rate"] = 200;
  const std::vector<SettingDifference> differences = CompareSettings(a, b);
  ASSERT_EQ(differences.size(), 2);
  EXPECT_EQ(differences[0].name, "model");
  EXPECT_FALSE(differences[0].is_load);
  EXPECT_EQ(differences[1].name, "rate");
  EXPECT_EQ(differences[1].a + " " + differences[1].b, "100 200");
  EXPECT_TRUE(differences[1].is_load);
}

// A server that sheds load answers the rest faster.
TEST(ComparisonTest, MoreFailedRequestsAreWorse) {
  const auto error_rate = [](int a, int b) {
    return CompareReports(Report(100, 0.02, a), Report(100, 0.01, b)).value()[1];
  };
  const ComparedFigure first = error_rate(0, 4);
  EXPECT_EQ(first.name, "error_rate");
  EXPECT_EQ(first.a, 0);
  EXPECT_DOUBLE_EQ(first.b, 0.04);
  EXPECT_EQ(first.change, Change::kWorse);
  EXPECT_EQ(first.PercentOfA(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(error_rate(4, 5).change, Change::kWorse);
  EXPECT_NEAR(error_rate(4, 5).PercentOfA(), 25, 1e-9);
  EXPECT_EQ(error_rate(4, 0).change, Change::kBetter);
  EXPECT_EQ(error_rate(0, 0).change, Change::kUnclear);
}

TEST(ComparisonTest, RefusesWhatIsNoReport) {
  const nlohmann::ordered_json good = Report(1, 1);
  for (const char* text : {"{}", "[]", "3", R"({"requests_per_s": 1})", R"({"runs": []})",
                           R"({"requests_per_s": "x", "latency_s": {}})",
                           R"({"requests_per_s": 1, "requests": {"ok": 1}, "latency_s": {}})"}) {
    const auto bad = nlohmann::ordered_json::parse(text);
    EXPECT_TRUE(absl::IsFailedPrecondition(CompareReports(bad, good).status())) << text;
    EXPECT_TRUE(absl::IsFailedPrecondition(CompareReports(good, bad).status())) << text;
  }
}

}  // namespace
}  // namespace attendant::client
