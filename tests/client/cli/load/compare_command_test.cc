// SPDX-License-Identifier: Apache-2.0
// attendant compare, of loads against a server in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/client/cli/command_fixture.h"

namespace attendant::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class CompareCommandTest : public CommandTest {};

TEST_F(CompareCommandTest, ComparesTwoLoads) {
  EXPECT_EQ(Run({"load", "--requests=30", "--warmup=0", "--json"}), 0);
  const std::string report = WriteFile("report.json", out_);
  EXPECT_EQ(RunAsGiven({"compare", report, report}), 0);
  EXPECT_THAT(out_, HasSubstr("requests_per_s"));
  EXPECT_THAT(out_, HasSubstr("+0.0 %"));
  EXPECT_THAT(out_, HasSubstr("+0 points"));
  EXPECT_EQ(RunAsGiven({"compare", "--json", report, report}), 0);
  EXPECT_EQ(OutputLines().at(0)["p99"]["change"], "unknown") << "less than five seconds";
  EXPECT_EQ(RunAsGiven({"compare", report}), 2);
  EXPECT_EQ(RunAsGiven({"compare", report, "/nonexistent.json"}), 2);
  EXPECT_EQ(RunAsGiven({"compare", report, WriteFile("broken.json", "{")}), 2);
  EXPECT_EQ(RunAsGiven({"compare", report, ::testing::TempDir()}), 2) << "a folder";
}

TEST_F(CompareCommandTest, AnInterruptedLoadGetsNoVerdict) {
  EXPECT_EQ(Run({"load", "--requests=30", "--warmup=0", "--json"}), 0);
  json whole = OutputLines().at(0), cut = whole;
  EXPECT_EQ(whole["interrupted"], false);
  cut["interrupted"] = true;
  const std::string a = WriteFile("a.json", whole.dump()), b = WriteFile("b.json", cut.dump());
  EXPECT_EQ(RunAsGiven({"compare", a, b, "--fail_if_worse=5"}), 6);
  EXPECT_THAT(err_, HasSubstr("no verdict on load B, it was interrupted"));
}

TEST_F(CompareCommandTest, WhatAReportSaysDoesNotReachTheTerminal) {
  EXPECT_EQ(Run({"load", "--requests=30", "--warmup=0", "--json"}), 0);
  json a = OutputLines().at(0), b = a;
  b["model"] = "\x1b[2J";
  b["client"]["bottleneck"] = "\x1b]0;title\x07";
  EXPECT_EQ(RunAsGiven({"compare", WriteFile("a.json", a.dump()), WriteFile("b.json", b.dump())}),
            6);
  EXPECT_THAT(err_, HasSubstr("B  [2J\n"));
  EXPECT_THAT(err_, HasSubstr("its bottleneck:  ]0;title \n"));
}

TEST_F(CompareCommandTest, ALoadOfWhichMoreFailsIsWorse) {
  EXPECT_EQ(Run({"load", "--requests=30", "--warmup=0", "--json"}), 0);
  json good = OutputLines().at(0), bad = good;
  for (const char* name : {"requests_per_s", "mean", "error_rate"}) {
    good["batches"][name] = bad["batches"][name] = std::vector<double>(10, 1);
  }
  good["batches"]["error_rate"] = std::vector<double>(10, 0);
  bad["batches"]["error_rate"] = std::vector<double>(10, 0.04);
  bad["requests"] = {{"ok", 96}, {"failed", 3}, {"not_sent", 1}};
  const std::string a = WriteFile("a.json", good.dump()), b = WriteFile("b.json", bad.dump());
  EXPECT_EQ(RunAsGiven({"compare", a, b, "--fail_if_worse=5"}), 5);
  EXPECT_THAT(out_, HasSubstr("+4 to +4 points"));
  EXPECT_THAT(err_, HasSubstr("error_rate is worse: 4 % after 0 %"));
  EXPECT_EQ(RunAsGiven({"compare", b, a, "--fail_if_worse=5"}), 0);
}

// As the load of a server that hardly answers.
TEST_F(CompareCommandTest, WhatCannotBeTestedFails) {
  EXPECT_EQ(Run({"load", "--requests=30", "--warmup=0", "--json"}), 0);
  const std::string report = WriteFile("report.json", out_);
  EXPECT_EQ(RunAsGiven({"compare", report, report}), 0);
  EXPECT_EQ(RunAsGiven({"compare", report, report, "--fail_if_worse=5"}), 5);
  EXPECT_THAT(err_, HasSubstr("mean was not tested"));
}

TEST_F(CompareCommandTest, UnlikeLoadsGetNoVerdict) {
  EXPECT_EQ(Run({"load", "--requests=30", "--warmup=0", "--json"}), 0);
  const std::string a = WriteFile("a.json", out_);
  EXPECT_EQ(Run({"load", "--requests=30", "--warmup=0", "--concurrency=2", "--json"}), 0);
  EXPECT_EQ(RunAsGiven({"compare", a, WriteFile("b.json", out_)}), 6);
  EXPECT_THAT(err_, HasSubstr("no verdict, the loads differ in max_outstanding: A has 8, B 2"));
  EXPECT_EQ(Run({"load", "--requests=30", "--warmup=0", "--rate=1000", "--json"}), 0);
  EXPECT_EQ(OutputLines().at(0)["arrivals"], "poisson");
  EXPECT_EQ(RunAsGiven({"compare", a, WriteFile("b.json", out_)}), 2);
}

}  // namespace
}  // namespace attendant::client
