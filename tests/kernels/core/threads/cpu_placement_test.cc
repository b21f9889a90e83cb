// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/threads/cpu_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Domains = std::vector<std::vector<int>>;

CpuBudget Budget(const Domains& domains, std::optional<double> quota = std::nullopt) {
  CpuBudget budget;
  for (const auto& domain : domains) {
    budget.cpus.insert(budget.cpus.end(), domain.begin(), domain.end());
  }
  budget.quota = quota;
  const int all = std::max(1, static_cast<int>(budget.cpus.size()));
  budget.threads = quota ? static_cast<int>(std::ceil(*quota)) : all;
  return budget;
}

const Domains kOne = {{0, 1}};
const Domains kTwo = {{0, 1, 2, 3}, {4, 5, 6, 7}};
const Domains kUnequal = {{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9}};

CpuPlacement Place(const Domains& domains, const PlacementOptions& options = {},
                   std::optional<double> quota = std::nullopt) {
  return PlaceReplicas(Budget(domains, quota), domains, options);
}

TEST(CpuPlacementTest, AThreadForEveryProcessorIsPinned) {
  const CpuPlacement placement = Place(kOne);
  EXPECT_THAT(placement.replicas, ElementsAre(ThreadTeam(2, {0, 1}, true)));
  EXPECT_EQ(placement.description, "1 replica of 2 threads, each on a processor of its own");
}

TEST(CpuPlacementTest, EveryDomainGetsAReplica) {
  EXPECT_THAT(Place(kTwo).replicas,
              ElementsAre(ThreadTeam(4, kTwo[0], true), ThreadTeam(4, kTwo[1], true)));
  EXPECT_THAT(Place(kUnequal).replicas,
              ElementsAre(ThreadTeam(6, kUnequal[0], true), ThreadTeam(4, kUnequal[1], true)));
  EXPECT_THAT(Place(kTwo, {.replicas = 1}).replicas,
              ElementsAre(ThreadTeam(8, {0, 1, 2, 3, 4, 5, 6, 7}, true)));
  EXPECT_THAT(Place(kTwo, {.replicas = 4}).replicas,
              ElementsAre(ThreadTeam(2, {0, 1}, true), ThreadTeam(2, {2, 3}, true),
                          ThreadTeam(2, {4, 5}, true), ThreadTeam(2, {6, 7}, true)));
}

TEST(CpuPlacementTest, FewThreadsAreNotSplit) {
  EXPECT_EQ(Place(kTwo, {.threads = 4}).replicas.size(), 1u);
  EXPECT_EQ(Place(kTwo, {}, 2.0).replicas.size(), 1u);
}

TEST(CpuPlacementTest, WhatOthersMayChooseTooIsNotPinned) {
  const std::tuple<PlacementOptions, std::optional<double>, const char*> cases[] = {
      {{.threads = 1}, std::nullopt, "fewer threads than the 2 processors"},
      {{.threads = 3}, std::nullopt, "more threads than the 2 processors"},
      {{.models = 2}, std::nullopt, "2 models share the processors"},
      {{.models = 2, .pin = PinThreads::kOn}, std::nullopt, "2 models share the processors"},
      {{}, 1.5, "a quota limits the group"},
      {{.pin = PinThreads::kOff}, std::nullopt, "--pin_threads=off"},
  };
  for (const auto& [options, quota, why] : cases) {
    const CpuPlacement placement = Place(kOne, options, quota);
    ASSERT_EQ(placement.replicas.size(), 1u);
    EXPECT_THAT(placement.replicas[0].cpus, IsEmpty()) << why;
    EXPECT_THAT(placement.description, HasSubstr(why));
  }
  EXPECT_TRUE(Place(kOne, {}, 2.0).replicas[0].one_each) << "a quota of all of them limits nothing";
}

TEST(CpuPlacementTest, OnPinsFewerThreadsThanProcessorsAndUnderAQuota) {
  EXPECT_THAT(Place(kTwo, {.threads = 3, .replicas = 1, .pin = PinThreads::kOn}).replicas,
              ElementsAre(ThreadTeam(3, {0, 1, 2, 3, 4, 5, 6, 7}, true)));
  EXPECT_TRUE(Place(kOne, {.pin = PinThreads::kOn}, 1.5).replicas[0].one_each);
}

TEST(CpuPlacementTest, ReplicasThatShareProcessorsStayInTheirDomains) {
  EXPECT_THAT(Place(kTwo, {.models = 3}).replicas,
              ElementsAre(ThreadTeam(4, kTwo[0], false), ThreadTeam(4, kTwo[1], false)));
  EXPECT_THAT(Place(kTwo, {.models = 3}).description, HasSubstr("kept inside 2 domains"));
  EXPECT_THAT(Place(kTwo, {.models = 3, .pin = PinThreads::kOff}).replicas,
              ElementsAre(ThreadTeam(4), ThreadTeam(4)));
  EXPECT_THAT(Place(kTwo, {.replicas = 1, .models = 3}).replicas, ElementsAre(ThreadTeam(8)));
}

// Whatever is asked: at least one thread each, all that were asked for, and none shares.
TEST(CpuPlacementTest, NoTwoPinnedThreadsShareAProcessor) {
  for (const Domains& domains : {kOne, kTwo, kUnequal, Domains{{5}}, Domains{}}) {
    for (int threads = 0; threads <= 12; ++threads) {
      for (int replicas = 0; replicas <= 12; ++replicas) {
        for (PinThreads pin : {PinThreads::kAuto, PinThreads::kOn, PinThreads::kOff}) {
          const CpuPlacement placement =
              Place(domains, {.threads = threads, .replicas = replicas, .pin = pin});
          SCOPED_TRACE(testing::Message()
                       << threads << " threads, " << replicas << " replicas, " << domains.size()
                       << " domains: " << placement.description);
          std::set<int> taken;
          int total = 0;
          for (const ThreadTeam& team : placement.replicas) {
            ASSERT_GE(team.threads, 1);
            total += team.threads;
            if (!team.one_each) continue;
            ASSERT_LE(team.threads, static_cast<int>(team.cpus.size()));
            for (int i = 0; i < team.threads; ++i) {
              EXPECT_TRUE(taken.insert(team.cpus[static_cast<size_t>(i)]).second);
            }
          }
          EXPECT_GE(total, threads);
          if (replicas > 0) {
            EXPECT_EQ(static_cast<int>(placement.replicas.size()), replicas);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace attendant
