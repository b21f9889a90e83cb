// SPDX-License-Identifier: Apache-2.0
#include "server/threads/task_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"

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

TEST(TaskPoolTest, SmallTasksPassLargeOnesThatRun) {
  absl::Notification end, small_ended;
  TaskPool pool(3, "test");
  std::atomic<int> begun = 0;
  for (int i = 0; i < 5; ++i) {
    pool.Post(
        [&] {
          ++begun;
          end.WaitForNotification();
        },
        TaskPool::Size::kLarge);
  }
  while (begun < 2) std::this_thread::yield();
  pool.Post([&] { small_ended.Notify(); });
  small_ended.WaitForNotification();
  EXPECT_EQ(begun, 2) << "one thread is left to the small ones";
  end.Notify();
  pool.AwaitIdle();
  EXPECT_EQ(begun, 5);
}

TEST(TaskPoolTest, OneThreadTakesBothKindsInTheirOrder) {
  absl::Notification begin;
  std::string order;
  {
    TaskPool pool(1, "test");
    pool.Post([&] { begin.WaitForNotification(); });
    pool.Post([&] { order += 's'; });
    pool.Post([&] { order += 'l'; }, TaskPool::Size::kLarge);
    pool.Post([&] { order += 't'; });
    pool.Post([&] { order += 'm'; }, TaskPool::Size::kLarge);
    begin.Notify();
  }
  EXPECT_EQ(order, "sltm");
}

}  // namespace
}  // namespace attendant
