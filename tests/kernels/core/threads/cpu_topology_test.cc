// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/threads/cpu_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "kernels/core/threads/cpu_budget.h"
#include "tests/support/checkpoint.h"
#include "tests/support/failing_listing.h"

namespace attendant {
namespace {

using testing::ElementsAre;

std::vector<int> Range(int begin, int end) {
  std::vector<int> cpus(static_cast<size_t>(end - begin));
  std::iota(cpus.begin(), cpus.end(), begin);
  return cpus;
}

class CpuTopologyTest : public testing::Test {
 protected:
  void WriteCache(int cpu, const std::string& shared) {
    const std::string folder = root_ / ("cpu/cpu" + std::to_string(cpu) + "/cache/index3");
    std::filesystem::create_directories(folder);
    WriteFile(folder + "/shared_cpu_list", shared + "\n");
  }
  void WriteNode(int node, const std::string& cpus) {
    const std::string folder = root_ / ("node/node" + std::to_string(node));
    std::filesystem::create_directories(folder);
    WriteFile(folder + "/cpulist", cpus + "\n");
  }
  std::vector<std::vector<int>> Read(const std::vector<int>& cpus) {
    return ReadCpuDomains(cpus, root_.path());
  }

  TempDirectory root_;
};

TEST_F(CpuTopologyTest, WithoutFilesThereIsOneDomain) {
  EXPECT_THAT(Read({3, 1, 2}), ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_TRUE(Read({}).empty());
}

TEST_F(CpuTopologyTest, ThirdLevelCachesSplitANode) {
  // Hyperthreads of 8 cores, four cores to a cache.
  for (int cpu = 0; cpu < 16; ++cpu) WriteCache(cpu, cpu % 8 < 4 ? "0-3,8-11" : "4-7,12-15");
  WriteNode(0, "0-15");
  EXPECT_THAT(Read(Range(0, 16)), ElementsAre(ElementsAre(0, 1, 2, 3, 8, 9, 10, 11),
                                              ElementsAre(4, 5, 6, 7, 12, 13, 14, 15)));
}

TEST_F(CpuTopologyTest, OnlyTheProcessorsOfTheMaskCount) {
  for (int cpu = 0; cpu < 16; ++cpu) WriteCache(cpu, cpu < 8 ? "0-7" : "8-15");
  EXPECT_THAT(Read(Range(2, 12)),
              ElementsAre(ElementsAre(2, 3, 4, 5, 6, 7), ElementsAre(8, 9, 10, 11)));
  EXPECT_EQ(Read(Range(2, 11)).size(), 1u) << "three processors are no domain";
}

TEST_F(CpuTopologyTest, SmallCachesFallBackToNodes) {
  for (int cpu = 0; cpu < 8; ++cpu) WriteCache(cpu, std::to_string(cpu));
  EXPECT_EQ(Read(Range(0, 8)).size(), 1u);
  WriteNode(0, "0-3");
  WriteNode(1, "4-7");
  WriteNode(2, "");  // memory without processors
  EXPECT_THAT(Read(Range(0, 8)), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
}

TEST_F(CpuTopologyTest, ProcessorsAreNumberedUpTo65535) {
  for (int cpu = 4; cpu < 8; ++cpu) WriteCache(cpu, "4-7");
  for (const auto& [highest, domains] : {std::pair{"65535", size_t{2}}, {"65536", size_t{1}}}) {
    for (int cpu = 0; cpu < 4; ++cpu) WriteCache(cpu, std::string("0-3,") + highest);
    EXPECT_EQ(Read(Range(0, 8)).size(), domains) << highest;
  }
}

TEST_F(CpuTopologyTest, NonsenseMeansOneDomain) {
  for (const char* nonsense :
       {"", "x", "0-", "-3", "3-0", "0-99999999", "0,,1", "\x01\xff", "9-12"}) {
    for (int cpu = 0; cpu < 8; ++cpu) WriteCache(cpu, nonsense);
    WriteNode(0, nonsense);
    EXPECT_THAT(Read(Range(0, 8)), ElementsAre(Range(0, 8))) << nonsense;
  }
}

TEST_F(CpuTopologyTest, AListingThatBreaksOffMeansOneDomain) {
  WriteNode(0, "0-3");
  WriteNode(1, "4-7");
  EXPECT_EQ(Read(Range(0, 8)).size(), 2u);
  const FailingListing broken(root_ / "node", 1);
  EXPECT_THAT(Read(Range(0, 8)), ElementsAre(Range(0, 8)));
}

TEST_F(CpuTopologyTest, ThisMachinesDomainsAreItsProcessors) {
  const std::vector<int> cpus = ReadCpuBudget().cpus;
  std::vector<int> all;
  for (const auto& domain : ReadCpuDomains(cpus))
    all.insert(all.end(), domain.begin(), domain.end());
  EXPECT_THAT(all, testing::UnorderedElementsAreArray(cpus));
}

}  // namespace
}  // namespace attendant
