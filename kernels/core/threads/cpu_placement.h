// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/core/threads/cpu_budget.h"
#include "kernels/core/threads/thread_team.h"

namespace attendant {

// The values of --pin_threads: pin each compute thread to a processor of its own, or not.
enum class PinThreads : uint8_t {
  kAuto,  // where that cannot cost anything, see PlaceReplicas
  kOn,    // wherever no two threads would share one
  kOff,   // threads go wherever the system puts them
};

struct PlacementOptions {
  int threads = 0;   // of a model, over all its replicas; 0: as many as the budget allows
  int replicas = 0;  // sessions of a model; 0: one for each domain
  int models = 1;    // each has its own sessions on the same processors
  PinThreads pin = PinThreads::kAuto;
};

struct CpuPlacement {
  std::vector<ThreadTeam> replicas;
  std::string
      description;  // one line, e.g. "2 replicas of 8 threads, each on a processor of its own"
};

// Chooses the processors of a model's replicas. `domains`: budget.cpus split by ReadCpuDomains.
// Pure.
//
// A thread gets a processor of its own only where no other thread of this process runs there, and
// where this process may use that processor fully. kAuto asks for one model, as many threads as the
// affinity mask has processors, and no quota below that. With fewer threads than processors, or
// with a quota, a second process would choose the same processors while others idle. With several
// models, threads of two models would meet on one processor. Replicas that are not pinned, but have
// whole domains, are kept inside their domains: the system balances there.
CpuPlacement PlaceReplicas(const CpuBudget& budget, const std::vector<std::vector<int>>& domains,
                           const PlacementOptions& options);

}  // namespace attendant
