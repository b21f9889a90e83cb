// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/threads/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace attendant {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsEveryTaskOnceAndSeesItsWrites) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (int64_t tasks = 0; tasks < 200; ++tasks) {
    std::vector<int> calls(
        static_cast<size_t>(tasks));  // not atomic: the pool must order the writes
    pool.ParallelFor(tasks, [&](int64_t index, int thread) {
      EXPECT_GE(thread, 0);
      EXPECT_LT(thread, pool.threads());
      ++calls[static_cast<size_t>(index)];
    });
    for (int count : calls) EXPECT_EQ(count, 1);
  }
}

TEST_P(ThreadPoolTest, WakesWorkersThatSleep) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> sum = 0;
  for (int round = 0; round < 20; ++round) {
    // Longer than the workers spin.
    const auto wake = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    while (std::chrono::steady_clock::now() < wake) std::this_thread::yield();
    pool.ParallelFor(50, [&](int64_t index, int) { sum += index; });
  }
  EXPECT_EQ(sum, 20 * 49 * 50 / 2);
}

TEST_P(ThreadPoolTest, LeavesOutWhatHasNotBegunWhenToldTo) {
  ThreadPool pool(GetParam());
  std::atomic<bool> stop = false;
  std::atomic<int> ran = 0;
  pool.StopWhen(&stop);
  const auto task = [&](int64_t, int) {
    ++ran;
    stop = true;
  };
  pool.ParallelFor(100, task);
  EXPECT_GE(ran, 1);
  EXPECT_LE(ran, pool.threads());
  ran = 0;
  pool.ParallelFor(100, task);
  EXPECT_EQ(ran, 0);
  stop = false;
  pool.ParallelFor(1, task);
  EXPECT_EQ(ran, 1);
  pool.StopWhen(nullptr);
  pool.ParallelFor(100, task);
  EXPECT_EQ(ran, 101);
}

TEST_P(ThreadPoolTest, StartsEveryWorkerOnce) {
  std::atomic<int> started = 0;
  {
    ThreadPool pool(GetParam(), [&] { ++started; });
  }
  EXPECT_EQ(started, GetParam() - 1);
}

TEST(ThreadPoolWorkersTest, WaitsForThoseWhoCame) {
  std::atomic<bool> came = false, left = false, returned = false;
  ThreadPool pool(2);
  pool.ParallelFor(2, [&](int64_t, int thread) {
    if (thread == 0) return came.wait(false);
    came = true;
    came.notify_one();
    for (int i = 0; i < 100'000 && !returned; ++i) std::this_thread::yield();
    left = true;
  });
  EXPECT_TRUE(left);
  returned = true;
}

// Jobs end while workers have not even begun to wait for them.
TEST(ThreadPoolWorkersTest, WaitsForNobodyWhoDidNotCome) {
  std::atomic<bool> may_start = false;
  ThreadPool pool(3, [&] { may_start.wait(false); });
  for (int64_t tasks = 0; tasks < 20; ++tasks) {
    std::vector<int> calls(static_cast<size_t>(tasks));
    pool.ParallelFor(tasks, [&](int64_t index, int thread) {
      EXPECT_EQ(thread, 0);
      ++calls[static_cast<size_t>(index)];
    });
    for (int count : calls) EXPECT_EQ(count, 1);
  }
  may_start = true;
  may_start.notify_all();
  std::atomic<int64_t> sum = 0;
  pool.ParallelFor(50, [&](int64_t index, int) { sum += index; });
  EXPECT_EQ(sum, 49 * 50 / 2);
}

// Fails to start the last worker: its function cannot be copied there.
TEST(ThreadPoolStartTest, WithoutItsWorkersItEndsThoseThatRun) {
  struct Scarce {
    explicit Scarce(std::atomic<int>& copies) : left(copies) {}
    Scarce(const Scarce& other) : left(other.left) {
      if (left-- == 0) throw std::runtime_error("no more");
    }
    void operator()() const {}
    std::atomic<int>& left;
  };
  bool started = false;
  for (int copies = 1; !started; ++copies) {
    std::atomic<int> left = copies;
    try {
      const ThreadPool pool(3, Scarce(left));
      started = true;
    } catch (const std::runtime_error&) {
    }
    ASSERT_LT(copies, 100);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 4, 7));

}  // namespace
}  // namespace attendant
