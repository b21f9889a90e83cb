// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/threads/cpu_budget.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The process's path inside the hierarchy of `controller` ("" is cgroup v2's), from the file `own`.
std::string CgroupPath(const std::string& own, const std::string& controller) {
  std::ifstream file(own);
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::stringstream names(line.substr(first + 1, second - first - 1));
    if (controller.empty() && second == first + 1) return line.substr(second + 1);
    for (std::string name; std::getline(names, name, ',');) {
      if (name == controller && !controller.empty()) return line.substr(second + 1);
    }
  }
  return "/";
}

// cpu.max of cgroup v2: "QUOTA PERIOD" or "max PERIOD".
std::optional<double> QuotaV2(const std::string& folder) {
  std::stringstream text(ReadLine(folder + "/cpu.max"));
  double quota = 0, period = 0;
  if (text >> quota >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

std::optional<double> QuotaV1(const std::string& folder) {
  std::stringstream quota_text(ReadLine(folder + "/cpu.cfs_quota_us"));
  std::stringstream period_text(ReadLine(folder + "/cpu.cfs_period_us"));
  double quota = 0, period = 0;
  if (quota_text >> quota && period_text >> period && quota > 0 && period > 0)
    return quota / period;
  return std::nullopt;
}

// The tightest quota on the way from the process's group up to the root: every level binds.
std::optional<double> TightestQuota(const std::string& mount, std::string path,
                                    std::optional<double> (*read)(const std::string&)) {
  std::optional<double> tightest;
  while (true) {
    const std::optional<double> quota = read(mount + path);
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
    if (path.empty()) return tightest;
    path.erase(path == "/" ? 0 : path.rfind('/'));
  }
}

std::optional<double> CgroupQuota(const std::string& root, const std::string& own) {
  const auto v2 = TightestQuota(root, CgroupPath(own, ""), QuotaV2);
  if (v2) return v2;
  return TightestQuota(root + "/cpu", CgroupPath(own, "cpu"), QuotaV1);
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
