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

TEST_F(CpuBudgetTest, NonsenseDoesNotLimit) {
  for (const char* nonsense : {"", "max 100000\n", "-5 100000\n", "1 0\n", "\x01\xff"}) {
    WriteFile(cgroup_ / "cpu.max", nonsense);
    EXPECT_EQ(ReadCpuBudget(cgroup_.path()).threads, CPU_COUNT(&saved_)) << nonsense;
  }
}

}  // namespace
}  // namespace attendant
