// SPDX-License-Identifier: Apache-2.0
#include "server/task_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace attendant {
namespace {

// Idle is a pool whose tasks have ended, not one that has taken them all.
TEST(TaskPoolTest, AwaitIdleWaitsForTheTasksThatRun) {
  TaskPool pool(2, "test");
  std::atomic<int> ended = 0;
  for (int round = 1; round <= 50; ++round) {
    pool.Post([&] {
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(500);
      while (std::chrono::steady_clock::now() < end) continue;
      ++ended;
    });
    pool.AwaitIdle();
    ASSERT_EQ(ended, round);
  }
}

TEST(TaskPoolTest, RunsWhatIsLeftWhenItEnds) {
  std::atomic<int> ended = 0;
  {
    TaskPool pool(1, "test");
    for (int i = 0; i < 100; ++i) pool.Post([&] { ++ended; });
  }
  EXPECT_EQ(ended, 100);
}

}  // namespace
}  // namespace attendant
