// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace attendant {

// The folders of the process's control groups below `mount`, from its own group, which the file
// `own` names, up to the root: the limits of every level bind. `controller` is a name of cgroup v1,
// as "memory", or "" for v2. At least one folder, which need not exist.
std::vector<std::string> CgroupFolders(const std::string& mount, const std::string& controller,
                                       const std::string& own = "/proc/self/cgroup");

// The file's first line; empty when it cannot be read.
std::string ReadFirstLine(const std::string& path);

}  // namespace attendant
