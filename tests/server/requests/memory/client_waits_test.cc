// SPDX-License-Identifier: Apache-2.0
#include "server/requests/memory/client_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kBytes = 100;

class ClientWaitsTest : public testing::Test {
 protected:
  // A call that notes its name when it is ended.
  std::unique_ptr<ClientWaits::Wait> NewCall(ClientWaits::Connection& connection,
                                             const std::string& name, int64_t bytes = kBytes) {
    return std::make_unique<ClientWaits::Wait>(connection, bytes, [this, name] {
      return [this, name](const absl::Status& status) {
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
        EXPECT_THAT(std::string(status.message()),
                    HasSubstr("400 bytes (--max_waiting_call_bytes)"));
        ended_.push_back(name);
      };
    });
  }
  std::unique_ptr<ClientWaits::Wait> Begin(ClientWaits::Connection& connection,
                                           const std::string& name, int64_t bytes = kBytes) {
    auto call = NewCall(connection, name, bytes);
    call->Begin();
    return call;
  }

  std::vector<std::string> ended_;
  int counted_ = 0;
  ClientWaits waits_{{.limit = 4 * kBytes, .on_gave_way = [this] { ++counted_; }}};  // room for 3
  ClientWaits::Connection a_{waits_};
  ClientWaits::Connection b_{waits_};
};

TEST_F(ClientWaitsTest, TheOldestGivesWayBeyondThreeQuarters) {
  const auto first = Begin(a_, "first");
  const auto second = Begin(a_, "second");
  const auto third = Begin(a_, "third");
  EXPECT_THAT(ended_, IsEmpty()) << "exactly full";
  EXPECT_EQ(a_.bytes(), 3 * kBytes);
  const auto fourth = Begin(a_, "fourth");
  EXPECT_THAT(ended_, ElementsAre("first"));
  EXPECT_EQ(counted_, 1);
  EXPECT_EQ(a_.bytes(), 3 * kBytes);
  EXPECT_EQ(first->End().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(second->End().ok());
  EXPECT_TRUE(fourth->End().ok());
  EXPECT_EQ(a_.bytes(), kBytes) << "each goes once";
}

TEST_F(ClientWaitsTest, CallsWhoseMessagesHaveComeDoNotCount) {
  const auto first = Begin(a_, "first");
  EXPECT_TRUE(first->End().ok());
  const auto second = Begin(a_, "second");
  auto third = Begin(a_, "third");
  third.reset();
  const auto fourth = Begin(a_, "fourth");
  const auto fifth = Begin(a_, "fifth");
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_EQ(a_.bytes(), 3 * kBytes);
}

TEST_F(ClientWaitsTest, TheConnectionThatHoldsMostGivesWay) {
  const auto slow = Begin(a_, "slow");
  const auto first = Begin(b_, "first");
  const auto second = Begin(b_, "second");
  const auto third = Begin(b_, "third");
  const auto other = Begin(a_, "other");
  EXPECT_THAT(ended_, ElementsAre("first", "second"));
  EXPECT_TRUE(slow->End().ok());
}

TEST_F(ClientWaitsTest, ALargeCallTakesThePlaceOfSeveral) {
  const auto first = Begin(a_, "first");
  const auto second = Begin(a_, "second");
  const auto third = Begin(a_, "third");
  const auto large = Begin(b_, "large", 2 * kBytes);
  EXPECT_THAT(ended_, ElementsAre("first", "second"));
  const auto larger = Begin(b_, "larger", 5 * kBytes);
  EXPECT_THAT(ended_, ElementsAre("first", "second", "large", "third"));
  EXPECT_EQ(b_.bytes(), 5 * kBytes) << "a new call is never refused";
}

TEST_F(ClientWaitsTest, ACallBeginsOnceAndNotAfterItGaveWay) {
  const auto first = Begin(a_, "first");
  const auto second = Begin(a_, "second");
  first->Begin();
  EXPECT_EQ(a_.bytes(), 2 * kBytes);
  const auto third = Begin(a_, "third");
  const auto fourth = Begin(a_, "fourth");
  EXPECT_THAT(ended_, ElementsAre("first")) << "it is still the oldest";
  first->Begin();
  EXPECT_EQ(a_.bytes(), 3 * kBytes);
  EXPECT_THAT(ended_, ElementsAre("first"));
  EXPECT_EQ(first->End().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ClientWaitsTest, ACallWaitsAgainForItsEndToBeTaken) {
  const auto first = Begin(a_, "first");
  EXPECT_TRUE(first->End().ok());
  const auto second = Begin(a_, "second");
  first->Begin();
  const auto third = Begin(a_, "third");
  const auto fourth = Begin(a_, "fourth");
  EXPECT_THAT(ended_, ElementsAre("second")) << "it has waited for longer";
}

TEST(ClientWaitsThreadsTest, EachCallEndsInOneWay) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 2000;
  constexpr size_t kOpen = 8;  // of a thread: there is room for six
  std::atomic<int> counted = 0;
  std::atomic<int> ended = 0;
  std::atomic<int> gave_way = 0;
  ClientWaits waits({.limit = kOpen * kBytes, .on_gave_way = [&counted] { ++counted; }});
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      ClientWaits::Connection connection(waits);
      std::vector<std::unique_ptr<ClientWaits::Wait>> open(kOpen);
      for (size_t call = 0; call < kCalls; ++call) {
        std::unique_ptr<ClientWaits::Wait>& place = open[call % kOpen];
        if (place != nullptr && !place->End().ok()) ++gave_way;
        place = std::make_unique<ClientWaits::Wait>(
            connection, kBytes, [&ended] { return [&ended](const absl::Status&) { ++ended; }; });
        place->Begin();
      }
      for (const auto& place : open) gave_way += place->End().ok() ? 0 : 1;
      EXPECT_EQ(connection.bytes(), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(ended, 0);
  EXPECT_EQ(ended, gave_way);
  EXPECT_EQ(ended, counted);
}

}  // namespace
}  // namespace attendant
