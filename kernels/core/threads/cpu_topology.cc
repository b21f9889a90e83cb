// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/threads/cpu_topology.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

constexpr int kMaxCpu = 1 << 16;  // an upper bound for what a file may make us hold

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The kernel's list format, "0-3,8,10-11"; nullopt for anything else.
std::optional<std::set<int>> ParseCpuList(absl::string_view text) {
  std::set<int> cpus;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    const bool range = part.find('-') != absl::string_view::npos;
    int first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) return std::nullopt;
    if (!absl::SimpleAtoi(range ? ends.second : ends.first, &last)) return std::nullopt;
    if (first < 0 || last < first || last >= kMaxCpu) return std::nullopt;
    for (int cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

// Where every processor's domain is known by its lowest member, the domains; else none.
CpuDomains Group(std::span<const int> cpus, const std::map<int, int>& domain_of) {
  std::map<int, std::vector<int>> members;
  for (int cpu : cpus) {
    const auto found = domain_of.find(cpu);
    if (found == domain_of.end()) return {};
    members[found->second].push_back(cpu);
  }
  CpuDomains domains;
  for (auto& [lowest, domain] : members) {
    std::sort(domain.begin(), domain.end());
    domains.push_back(std::move(domain));
  }
  std::sort(domains.begin(), domains.end());
  return domains;
}

std::map<int, int> CacheDomains(std::span<const int> cpus, const std::string& root) {
  std::map<int, int> domain_of;
  for (int cpu : cpus) {
    const auto shared = ParseCpuList(
        ReadLine(absl::StrCat(root, "/cpu/cpu", cpu, "/cache/index3/shared_cpu_list")));
    if (shared && shared->contains(cpu)) domain_of[cpu] = *shared->begin();
  }
  return domain_of;
}

std::map<int, int> NodeDomains(const std::string& root) {
  std::map<int, int> domain_of;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root + "/node", error), end;
       !error && entry != end; entry.increment(error)) {
    int node = 0;
    const std::string name = entry->path().filename().string();
    absl::string_view number = name;
    if (!absl::ConsumePrefix(&number, "node") || !absl::SimpleAtoi(number, &node)) continue;
    const auto cpus = ParseCpuList(ReadLine(entry->path().string() + "/cpulist"));
    if (!cpus) continue;  // a node of memory alone has an empty list
    for (int cpu : *cpus) domain_of[cpu] = node;
  }
  return domain_of;
}

bool LargeEnough(const CpuDomains& domains) {
  return !domains.empty() && std::all_of(domains.begin(), domains.end(), [](const auto& domain) {
    return domain.size() >= static_cast<size_t>(kMinDomainCpus);
  });
}

}  // namespace

CpuDomains ReadCpuDomains(std::span<const int> cpus, const std::string& root) {
  if (cpus.empty()) return {};
  if (CpuDomains caches = Group(cpus, CacheDomains(cpus, root)); LargeEnough(caches)) return caches;
  if (CpuDomains nodes = Group(cpus, NodeDomains(root)); LargeEnough(nodes)) return nodes;
  CpuDomains all{{cpus.begin(), cpus.end()}};
  std::sort(all[0].begin(), all[0].end());
  return all;
}

}  // namespace attendant
