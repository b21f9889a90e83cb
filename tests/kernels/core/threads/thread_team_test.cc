// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/threads/thread_team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "kernels/core/threads/cpu_budget.h"
#include "kernels/core/threads/thread_pool.h"

namespace attendant {
namespace {

using testing::ElementsAre;

// The calling thread's affinity mask.
std::vector<int> Mask() { return ReadCpuBudget("/nonexistent").cpus; }

class ThreadTeamTest : public testing::Test {
 protected:
  const std::vector<int> all_ = Mask();
};

TEST_F(ThreadTeamTest, ANumberLeavesThreadsWhereTheyAre) {
  PlaceThisThread(2, 1);
  EXPECT_EQ(Mask(), all_);
  const ScopedPlacement placement(2);
  EXPECT_EQ(Mask(), all_);
}

TEST_F(ThreadTeamTest, APinnedThreadHasOneProcessor) {
  std::thread([this] {
    PlaceThisThread({1, {all_.back()}, true}, 0);
    EXPECT_THAT(Mask(), ElementsAre(all_.back()));
  }).join();
  EXPECT_EQ(Mask(), all_);
}

TEST_F(ThreadTeamTest, AnUnpinnedTeamHasAllOfIts) {
  std::thread([this] {
    PlaceThisThread({1, {all_.front()}, true}, 0);
    PlaceThisThread({1, all_, false}, 0);
    EXPECT_EQ(Mask(), all_);
  }).join();
}

TEST_F(ThreadTeamTest, ScopedPlacementEnds) {
  {
    const ScopedPlacement placement({1, {all_.back()}, true});
    EXPECT_THAT(Mask(), ElementsAre(all_.back()));
  }
  EXPECT_EQ(Mask(), all_);
}

TEST_F(ThreadTeamTest, AProcessorThatIsNotThereChangesNothing) {
  const ScopedPlacement placement({1, {65000}, true});
  PlaceThisThread({1, {65000}, true}, 0);
  EXPECT_EQ(Mask(), all_);
}

TEST_F(ThreadTeamTest, APoolPlacesItsWorkersAndItsCaller) {
  if (all_.size() < 2) GTEST_SKIP() << "needs two processors";
  std::mutex mutex;
  std::vector<std::vector<int>> masks;
  std::thread([&] {
    ThreadPool pool({2, {all_[1], all_[0]}, true}, [&] {
      const std::lock_guard lock(mutex);
      masks.push_back(Mask());
    });
    EXPECT_EQ(Mask(), all_) << "making a pool does not move the maker";
    pool.PlaceCaller();
    EXPECT_THAT(Mask(), ElementsAre(all_[1]));
  }).join();
  EXPECT_THAT(masks, ElementsAre(ElementsAre(all_[0])));
}

}  // namespace
}  // namespace attendant
