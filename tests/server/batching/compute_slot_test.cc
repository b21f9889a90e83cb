// SPDX-License-Identifier: Apache-2.0
#include "server/batching/compute_slot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/batching/simulation/simulated_threading.h"

namespace attendant {
namespace {

constexpr auto kNotBusy = [] {};
// What the simulation's turns take.
constexpr absl::Duration kSlack = absl::Microseconds(20);

struct Worker {
  double weight = 1;
  absl::Duration batch;                         // how long each takes
  absl::Duration pause = absl::ZeroDuration();  // after each
  absl::Duration computed{};
  absl::Duration longest_wait{};
};

// Workers that take turns for a simulated time.
class ComputeSlotTest : public testing::TestWithParam<uint64_t> {
 protected:
  void Run(std::vector<Worker>& workers, absl::Duration time) {
    const std::string stuck = threading_.Run([&] {
      const absl::Time end = threading_.Now() + time;
      std::deque<std::unique_ptr<Threading::Thread>> threads;
      for (Worker& worker : workers) {
        threads.push_back(threading_.Start("worker", [&] { Work(worker, end); }));
      }
    });
    EXPECT_EQ(stuck, "");
  }

  void Work(Worker& worker, absl::Time end) {
    ComputeSlot::User user(slot_, worker.weight);
    while (threading_.Now() < end) {
      const absl::Time asked = threading_.Now();
      {
        const ComputeSlot::Turn turn(&user, kNotBusy);
        EXPECT_EQ(std::exchange(taken_, true), false);
        worker.longest_wait = std::max(worker.longest_wait, threading_.Now() - asked);
        threading_.Sleep(worker.batch);
        worker.computed += worker.batch;
        EXPECT_EQ(std::exchange(taken_, false), true);
      }
      if (worker.pause > absl::ZeroDuration()) threading_.Sleep(worker.pause);
    }
  }

  SimulatedThreading threading_{{.seed = GetParam(), .early_wakes = GetParam() % 2 == 1}};
  ComputeSlot slot_{threading_};
  bool taken_ = false;
};

INSTANTIATE_TEST_SUITE_P(Seeds, ComputeSlotTest, testing::Range(uint64_t{1}, uint64_t{21}));

TEST_P(ComputeSlotTest, BusyWorkersShareByWeightWhateverTheirBatches) {
  std::vector<Worker> workers{{.weight = 1, .batch = absl::Milliseconds(40)},
                              {.weight = 1, .batch = absl::Milliseconds(10)},
                              {.weight = 2, .batch = absl::Milliseconds(25)}};
  Run(workers, absl::Seconds(40));
  EXPECT_NEAR(absl::ToDoubleSeconds(workers[0].computed), 10, 0.5);
  EXPECT_NEAR(absl::ToDoubleSeconds(workers[1].computed), 10, 0.5);
  EXPECT_NEAR(absl::ToDoubleSeconds(workers[2].computed), 20, 0.5);
}

TEST_P(ComputeSlotTest, WhatOneLeavesTheOthersTake) {
  std::vector<Worker> workers{{.batch = absl::Milliseconds(10), .pause = absl::Milliseconds(90)},
                              {.batch = absl::Milliseconds(10)}};
  Run(workers, absl::Seconds(10));
  EXPECT_GT(workers[0].computed, absl::Milliseconds(900));
  EXPECT_GT(workers[0].computed + workers[1].computed, absl::Milliseconds(9900));
}

TEST_P(ComputeSlotTest, OneThatWasIdleWaitsForOneBatchAndDoesNotCatchUp) {
  std::vector<Worker> workers{{.batch = absl::Milliseconds(5), .pause = absl::Seconds(1)},
                              {.batch = absl::Milliseconds(20)}};
  Run(workers, absl::Seconds(30));
  EXPECT_LE(workers[0].longest_wait, absl::Milliseconds(20) + kSlack);
  EXPECT_LE(workers[1].longest_wait, absl::Milliseconds(5) + kSlack);
}

TEST_P(ComputeSlotTest, TellsThatItMustWait) {
  ComputeSlot::User one(slot_, 1), other(slot_, 1);
  int told = 0;
  const auto busy = [&told] { ++told; };
  const std::string stuck = threading_.Run([&] {
    std::unique_ptr<Threading::Thread> thread;
    {
      const ComputeSlot::Turn turn(&one, busy);
      EXPECT_EQ(told, 0);
      thread = threading_.Start("other", [&] { const ComputeSlot::Turn later(&other, busy); });
      threading_.Sleep(absl::Milliseconds(1));
      EXPECT_EQ(told, 1);
    }
  });
  EXPECT_EQ(stuck, "");
}

}  // namespace
}  // namespace attendant
