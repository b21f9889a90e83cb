// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/threads/thread_team.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "kernels/core/check.h"

namespace attendant {
namespace {

// Room for every processor that this project reads from a mask (cpu_budget.cc).
constexpr size_t kMaxCpus = size_t{1} << 16;

bool MoveTo(std::span<const int> cpus) {
  cpu_set_t* set = CPU_ALLOC(kMaxCpus);
  const size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  CPU_ZERO_S(bytes, set);
  for (int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), bytes, set);
  const bool moved = sched_setaffinity(0, bytes, set) == 0;
  CPU_FREE(set);
  return moved;
}

}  // namespace

void PlaceThisThread(const ThreadTeam& team, int index) {
  if (team.cpus.empty()) return;
  if (!team.one_each) {
    MoveTo(team.cpus);
    return;
  }
  ATTENDANT_CHECK(index < static_cast<int>(team.cpus.size()));
  MoveTo({&team.cpus[static_cast<size_t>(index)], 1});
}

ScopedPlacement::ScopedPlacement(const ThreadTeam& team) {
  if (team.cpus.empty()) return;
  saved_ = CPU_ALLOC(kMaxCpus);
  saved_bytes_ = CPU_ALLOC_SIZE(kMaxCpus);
  if (sched_getaffinity(0, saved_bytes_, saved_) == 0 && MoveTo(team.cpus)) return;
  CPU_FREE(saved_);
  saved_ = nullptr;
}

ScopedPlacement::~ScopedPlacement() {
  if (saved_ == nullptr) return;
  sched_setaffinity(0, saved_bytes_, saved_);
  CPU_FREE(saved_);
}

}  // namespace attendant
