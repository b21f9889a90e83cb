// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace attendant {

// A domain with fewer processors than this is not worth a replica of its own: some virtual machines
// report a cache of its own for every processor.
inline constexpr int kMinDomainCpus = 4;

// Processors by domain.
using CpuDomains = std::vector<std::vector<int>>;

// Splits `cpus` into domains that share memory closely: by third-level cache, or, where that gives
// a domain below kMinDomainCpus, by NUMA node, or not at all. Reads the files of Linux's
// /sys/devices/system below `root`; a processor of which they say nothing makes that split
// impossible. Each domain ascends; together they are `cpus`, the one with the lowest processor
// first. Empty for no processors.
CpuDomains ReadCpuDomains(std::span<const int> cpus,
                          const std::string& root = "/sys/devices/system");

}  // namespace attendant
