// SPDX-License-Identifier: Apache-2.0
#include "server/threads/thread_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/threads/failing_threads.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST(ThreadRoomTest, SaysWhetherTheSystemAllowsTheThreads) {
  EXPECT_TRUE(CheckThreadRoom(0).ok());
  {
    const FailingThreads limited(4);
    const absl::Status refused = CheckThreadRoom(5);
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("the system refuses another thread: 4 of 5 started"));
    EXPECT_TRUE(absl::IsResourceExhausted(CheckThreadRoom(1)));
    EXPECT_TRUE(CheckThreadRoom(0).ok());
  }
  EXPECT_TRUE(CheckThreadRoom(5).ok());
}

}  // namespace
}  // namespace attendant
