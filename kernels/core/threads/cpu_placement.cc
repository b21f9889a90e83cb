// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/threads/cpu_placement.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/core/threads/cpu_topology.h"

namespace attendant {
namespace {

// One for each domain, as long as each gets enough threads to be worth it.
int ChooseReplicas(const PlacementOptions& options, int threads, const CpuDomains& domains) {
  if (options.replicas > 0) return options.replicas;
  const int affordable = std::max(1, threads / kMinDomainCpus);
  return std::max(1, std::min(static_cast<int>(domains.size()), affordable));
}

// Whether replicas fill whole domains, or equal parts of one.
bool DomainsFit(int replicas, const CpuDomains& domains) {
  const auto count = static_cast<int>(domains.size());
  return count > 0 && replicas % count == 0 &&
         std::all_of(domains.begin(), domains.end(), [&](const std::vector<int>& domain) {
           return static_cast<int>(domain.size()) >= replicas / count;
         });
}

// The processors of replica `index`: a domain or its part of one where that fits, else its part of
// them all, neighbours together.
std::vector<int> CpusOf(int index, int replicas, const CpuDomains& domains) {
  std::vector<int> cpus;
  int part = index, parts = replicas;
  if (DomainsFit(replicas, domains)) {
    parts = replicas / static_cast<int>(domains.size());
    part = index % parts;
    cpus = domains[static_cast<size_t>(index / parts)];
  } else {
    for (const auto& domain : domains) cpus.insert(cpus.end(), domain.begin(), domain.end());
  }
  const auto size = static_cast<int>(cpus.size());
  return {cpus.begin() + part * size / parts, cpus.begin() + (part + 1) * size / parts};
}

// Why threads are not pinned; empty when they are.
std::string WhyNotPinned(const CpuBudget& budget, const PlacementOptions& options, int threads) {
  const auto cpus = static_cast<int>(budget.cpus.size());
  if (options.pin == PinThreads::kOff) return "--pin_threads=off";
  if (options.models > 1) return absl::StrCat(options.models, " models share the processors");
  if (threads > cpus) return absl::StrCat("more threads than the ", cpus, " processors");
  if (options.pin == PinThreads::kOn) return "";
  if (budget.quota && *budget.quota < cpus) return "a quota limits the group";
  if (threads < cpus) return absl::StrCat("fewer threads than the ", cpus, " processors");
  return "";
}

bool HasProcessorForEach(const ThreadTeam& team) {
  return team.threads <= static_cast<int>(team.cpus.size());
}

std::string Describe(const std::vector<ThreadTeam>& teams, const CpuDomains& domains,
                     const std::string& why_not) {
  std::vector<int> threads;
  for (const ThreadTeam& team : teams) threads.push_back(team.threads);
  std::string text = absl::StrCat(
      threads.size(), threads.size() == 1 ? " replica of " : " replicas of ",
      absl::StrJoin(threads, "+"), threads == std::vector<int>{1} ? " thread, " : " threads, ");
  if (teams[0].one_each) return absl::StrCat(text, "each on a processor of its own");
  absl::StrAppend(&text, teams[0].cpus.empty()
                             ? "placed by the system"
                             : absl::StrCat("kept inside ", domains.size(), " domains"));
  return absl::StrCat(text, " (", why_not, ")");
}

}  // namespace

CpuPlacement PlaceReplicas(const CpuBudget& budget, const CpuDomains& domains,
                           const PlacementOptions& options) {
  const int wanted = options.threads > 0 ? options.threads : budget.threads;
  const int replicas = ChooseReplicas(options, wanted, domains);
  const int threads = std::max(wanted, replicas);
  CpuPlacement placement;
  std::vector<ThreadTeam>& teams = placement.replicas;
  for (int i = 0; i < replicas; ++i) {
    const int share = threads / replicas + (i < threads % replicas ? 1 : 0);
    teams.emplace_back(share, CpusOf(i, replicas, domains), /*one_each=*/false);
  }
  std::string why_not = WhyNotPinned(budget, options, threads);
  if (why_not.empty() && threads == static_cast<int>(budget.cpus.size())) {
    // Every processor has its thread: unequal domains make unequal teams.
    for (ThreadTeam& team : teams) team.threads = static_cast<int>(team.cpus.size());
  } else if (why_not.empty() && !std::all_of(teams.begin(), teams.end(), HasProcessorForEach)) {
    why_not = "the replicas do not fit";
  }
  const bool stay_in_domains =
      options.pin != PinThreads::kOff && domains.size() > 1 && DomainsFit(replicas, domains);
  for (ThreadTeam& team : teams) {
    team.one_each = why_not.empty();
    if (!team.one_each && !stay_in_domains) team.cpus.clear();
  }
  placement.description = Describe(teams, domains, why_not);
  return placement;
}

}  // namespace attendant
