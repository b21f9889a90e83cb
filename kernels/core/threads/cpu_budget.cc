// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/threads/cpu_budget.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/core/threads/cgroup.h"

namespace attendant {
namespace {

std::vector<int> AffinityCpus() {
  // Grows until the kernel's mask fits: machines with more than CPU_SETSIZE processors exist.
  for (int capacity = CPU_SETSIZE; capacity <= 1 << 16; capacity *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(capacity));
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(capacity));
    std::vector<int> cpus;
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; ok && cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (ok) return cpus;
  }
  return {};
}

// cpu.max of cgroup v2: "QUOTA PERIOD" or "max PERIOD".
std::optional<double> QuotaV2(const std::string& folder) {
  std::stringstream text(ReadFirstLine(folder + "/cpu.max"));
  double quota = 0, period = 0;
  if (text >> quota >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

std::optional<double> QuotaV1(const std::string& folder) {
  std::stringstream quota_text(ReadFirstLine(folder + "/cpu.cfs_quota_us"));
  std::stringstream period_text(ReadFirstLine(folder + "/cpu.cfs_period_us"));
  double quota = 0, period = 0;
  if (quota_text >> quota && period_text >> period && quota > 0 && period > 0)
    return quota / period;
  return std::nullopt;
}

// The tightest quota: every level binds.
std::optional<double> TightestQuota(const std::vector<std::string>& folders,
                                    std::optional<double> (*read)(const std::string&)) {
  std::optional<double> tightest;
  for (const std::string& folder : folders) {
    const std::optional<double> quota = read(folder);
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
  }
  return tightest;
}

std::optional<double> CgroupQuota(const std::string& root, const std::string& own) {
  const auto v2 = TightestQuota(CgroupFolders(root, "", own), QuotaV2);
  if (v2) return v2;
  return TightestQuota(CgroupFolders(root + "/cpu", "cpu", own), QuotaV1);
}

}  // namespace

CpuBudget ReadCpuBudget(const std::string& cgroup_root, const std::string& own) {
  CpuBudget budget;
  budget.cpus = AffinityCpus();
  const int available = budget.cpus.empty()
                            ? static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))
                            : static_cast<int>(budget.cpus.size());
  const std::optional<double> quota = budget.quota = CgroupQuota(cgroup_root, own);
  budget.threads = available;
  if (quota) budget.threads = std::min(available, std::max(1, static_cast<int>(std::ceil(*quota))));
  budget.reason = absl::StrCat("affinity mask: ", available, " processors; cgroup quota: ",
                               quota ? absl::StrFormat("%.2f", *quota) : std::string("none"));
  return budget;
}

}  // namespace attendant
