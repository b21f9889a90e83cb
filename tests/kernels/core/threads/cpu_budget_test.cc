// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/threads/cpu_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>

#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::HasSubstr;

class CpuBudgetTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(sched_getaffinity(0, sizeof(saved_), &saved_), 0); }
  void TearDown() override { sched_setaffinity(0, sizeof(saved_), &saved_); }

  TempDirectory cgroup_;
  cpu_set_t saved_;
};

TEST_F(CpuBudgetTest, WithoutAQuotaTheAffinityMaskCounts) {
  const CpuBudget budget = ReadCpuBudget(cgroup_.path());
  EXPECT_EQ(budget.threads, CPU_COUNT(&saved_));
  EXPECT_EQ(static_cast<int>(budget.cpus.size()), budget.threads);
  EXPECT_THAT(budget.reason, HasSubstr("quota: none"));
}

TEST_F(CpuBudgetTest, AMaskOfOneProcessorMeansOneThread) {
  cpu_set_t one;
  CPU_ZERO(&one);
  const int cpu = ReadCpuBudget(cgroup_.path()).cpus.back();
  CPU_SET(static_cast<size_t>(cpu), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const CpuBudget budget = ReadCpuBudget(cgroup_.path());
  EXPECT_EQ(budget.threads, 1);
  EXPECT_THAT(budget.cpus, testing::ElementsAre(cpu));
}

TEST_F(CpuBudgetTest, AQuotaOfHalfAProcessorMeansOneThread) {
  WriteFile(cgroup_ / "cpu.max", "50000 100000\n");
  const CpuBudget budget = ReadCpuBudget(cgroup_.path());
  EXPECT_EQ(budget.threads, 1);
  EXPECT_THAT(budget.reason, HasSubstr("quota: 0.50"));
}

TEST_F(CpuBudgetTest, VersionOneQuotaCountsToo) {
  std::filesystem::create_directory(cgroup_ / "cpu");
  WriteFile(cgroup_ / "cpu/cpu.cfs_quota_us", "100000\n");
  WriteFile(cgroup_ / "cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(ReadCpuBudget(cgroup_.path()).threads, 1);
  WriteFile(cgroup_ / "cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(ReadCpuBudget(cgroup_.path()).threads, CPU_COUNT(&saved_));
}

// Each group on the way up binds, wherever the tightest is.
TEST_F(CpuBudgetTest, TheTightestGroupCounts) {
  const std::string own = cgroup_ / "own";
  WriteFile(own, "1:cpu,cpuacct:/pod/container\n0::/pod/container\n");
  for (const char* version : {"", "cpu/"}) {
    const std::string root = cgroup_ / version;
    std::filesystem::create_directories(root + "pod/container");
  }
  const auto v2 = [&](const char* group, const char* quota) {
    WriteFile(cgroup_ / (std::string(group) + "cpu.max"), std::string(quota) + " 100000\n");
    return ReadCpuBudget(cgroup_.path(), own).quota;
  };
  const auto v1 = [&](const char* group, const char* quota) {
    WriteFile(cgroup_ / ("cpu/" + std::string(group) + "cpu.cfs_quota_us"), quota);
    WriteFile(cgroup_ / ("cpu/" + std::string(group) + "cpu.cfs_period_us"), "100000\n");
    return ReadCpuBudget(cgroup_.path(), own).quota;
  };
  EXPECT_EQ(v1("pod/container/", "300000"), 3);
  EXPECT_EQ(v1("pod/", "200000"), 2);
  EXPECT_EQ(v1("", "400000"), 2);
  EXPECT_EQ(v2("pod/container/", "500000"), 5) << "version 2 comes first";
  EXPECT_EQ(v2("pod/", "150000"), 1.5);
  EXPECT_EQ(v2("", "600000"), 1.5);
  EXPECT_EQ(v2("", "50000"), 0.5);
}

TEST_F(CpuBudgetTest, NonsenseDoesNotLimit) {
  for (const char* nonsense : {"", "max 100000\n", "-5 100000\n", "1 0\n", "\x01\xff"}) {
    WriteFile(cgroup_ / "cpu.max", nonsense);
    EXPECT_EQ(ReadCpuBudget(cgroup_.path()).threads, CPU_COUNT(&saved_)) << nonsense;
  }
}

}  // namespace
}  // namespace attendant
