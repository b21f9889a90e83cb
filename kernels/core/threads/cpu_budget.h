// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace attendant {

// The number of processors that this process may use, with the reason: the smaller of its affinity
// mask and its cgroup's CPU quota (rounded up), not the machine's core count.
struct CpuBudget {
  int threads = 1;
  std::optional<double> quota;  // processors that the cgroup may use on average
  std::vector<int> cpus;        // the affinity mask's processors, ascending
  std::string reason;           // e.g. "affinity mask: 8 processors; cgroup quota: 2.5"
};

// Reads the mask and cgroup v2 (or v1) files below `cgroup_root`, of the group that the file `own`
// names and of all that hold it; a file that cannot be read sets no limit.
CpuBudget ReadCpuBudget(const std::string& cgroup_root = "/sys/fs/cgroup",
                        const std::string& own = "/proc/self/cgroup");

}  // namespace attendant
