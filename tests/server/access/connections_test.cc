// SPDX-License-Identifier: Apache-2.0
#include "server/access/connections.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace attendant {
namespace {

class ConnectionTableTest : public testing::Test {
 protected:
  ConnectionReport ReportOf(const std::string& peer) {
    for (const ConnectionReport& report : table_.Report()) {
      if (report.peer == peer) return report;
    }
    return {};
  }

  int64_t now_ = 1000;
  ConnectionTable table_{[this] { return now_; }};
};

TEST_F(ConnectionTableTest, CountsTheLastMinute) {
  const OpenCall call(table_, "a");
  call.Count({.requests = 1, .request_bytes = 10, .response_bytes = 100, .refused = 1});
  now_ += 30;
  call.Count({.requests = 1, .request_bytes = 5});
  const ConnectionReport report = ReportOf("a");
  EXPECT_EQ(report.age_s, 30);
  EXPECT_EQ(report.open_calls, 1);
  EXPECT_EQ(report.last_minute.requests, 2);
  EXPECT_EQ(report.last_minute.request_bytes, 15);
  EXPECT_EQ(report.last_minute.response_bytes, 100);
  EXPECT_EQ(report.last_minute.refused, 1);
  now_ += 30;
  EXPECT_EQ(ReportOf("a").last_minute.requests, 1);
  EXPECT_EQ(ReportOf("a").last_minute.refused, 0);
  now_ += 30;
  EXPECT_EQ(ReportOf("a").last_minute.requests, 0);
}

TEST_F(ConnectionTableTest, CallsOfOneConnectionAreCountedTogether) {
  auto first = std::make_unique<OpenCall>(table_, "a");
  const OpenCall second(table_, "a");
  EXPECT_EQ(ReportOf("a").open_calls, 2);
  first.reset();
  EXPECT_EQ(ReportOf("a").open_calls, 1);
}

TEST_F(ConnectionTableTest, AnIdleConnectionIsNotReportedAndKeepsItsAge) {
  { const OpenCall call(table_, "a"); }
  EXPECT_EQ(table_.Report().size(), 0u);
  now_ += 600;
  { const OpenCall call(table_, "a"); }
  const OpenCall again(table_, "a");
  EXPECT_EQ(ReportOf("a").age_s, 600);
}

TEST_F(ConnectionTableTest, ALongSilenceMakesANewConnection) {
  { const OpenCall call(table_, "a"); }
  now_ += 601;
  const OpenCall call(table_, "a");
  EXPECT_EQ(ReportOf("a").age_s, 0);
}

TEST_F(ConnectionTableTest, AnOpenCallIsNoSilence) {
  const OpenCall first(table_, "a");
  now_ += 10'000;
  const OpenCall second(table_, "a");
  EXPECT_EQ(ReportOf("a").age_s, 10'000);
  EXPECT_EQ(ReportOf("a").open_calls, 2);
}

TEST_F(ConnectionTableTest, KnowsABoundedNumberOfThoseWithoutACall) {
  const OpenCall open(table_, "open");
  for (size_t i = 0; i < 2 * ConnectionTable::kMaxKnown; ++i) {
    const OpenCall call(table_, absl::StrCat("peer", i));
    call.Count({.requests = 1});
  }
  EXPECT_EQ(table_.Report().size(), ConnectionTable::kMaxKnown);
  EXPECT_EQ(ReportOf("peer1").peer, "");
  const OpenCall again(table_, "open");
  EXPECT_EQ(again.open_calls(), 2) << "it is not forgotten";
}

TEST_F(ConnectionTableTest, KnowsAllThatHaveAnOpenCall) {
  std::vector<std::unique_ptr<OpenCall>> calls;
  for (size_t i = 0; i < ConnectionTable::kMaxKnown + 100; ++i) {
    calls.push_back(std::make_unique<OpenCall>(table_, absl::StrCat("peer", i)));
  }
  EXPECT_EQ(table_.Report().size(), calls.size());
  const OpenCall again(table_, "peer0");
  EXPECT_EQ(again.open_calls(), 2);
}

// A connection is forgotten at its next call, unless it has an open one.
TEST(ConnectionTableThreadsTest, AConnectionIsNotForgottenBetweenItsLookUpAndItsCall) {
  constexpr int kThreads = 4, kCalls = 100'000;
  std::atomic<int64_t> now = 0;
  ConnectionTable table([&now] { return now += 1000; });
  std::atomic<int> alone = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&table, &alone] {
      for (int call = 0; call < kCalls; ++call) {
        const OpenCall first(table, "a");
        const OpenCall second(table, "a");
        if (second.open_calls() < 2) ++alone;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alone, 0) << "calls were counted at a connection that the table had forgotten";
}

ConnectionReport Report(int number) {
  ConnectionReport report{.peer = absl::StrCat("peer", number)};
  report.last_minute.requests = number;
  return report;
}

TEST(ConnectionsPageTest, ShowsTheFirstByEachMeasure) {
  std::vector<ConnectionReport> reports;
  for (int i = 1; i <= 100; ++i) reports.push_back(Report(i));
  reports[0].last_minute.refused = 7;
  reports[1].response_memory_bytes = 1;
  reports[2].last_minute.request_bytes = 3;
  reports[3].open_calls = 1;
  const auto page = nlohmann::json::parse(ConnectionsPage(reports));
  EXPECT_EQ(page["active_connections"], 100);
  const auto& shown = page["connections"];
  ASSERT_EQ(shown.size(), 20u);
  EXPECT_EQ(shown[0]["peer"], "peer100");
  EXPECT_EQ(shown[15]["peer"], "peer85");
  EXPECT_EQ(shown[16]["peer"], "peer4");
  EXPECT_EQ(shown[16]["open_calls"], 1);
  EXPECT_EQ(shown[17]["bytes_in"], 3);
  EXPECT_EQ(shown[18]["response_memory_bytes"], 1);
  EXPECT_EQ(shown[19]["refused"], 7);
}

TEST(ConnectionsPageTest, IsJsonWhateverThePeer) {
  ConnectionReport report{.peer = "\"\n\xff"};
  report.open_calls = 1;
  const auto page = nlohmann::json::parse(ConnectionsPage({report}));
  EXPECT_EQ(page["connections"].size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(ConnectionsPage({}))["connections"].size(), 0u);
}

}  // namespace
}  // namespace attendant
