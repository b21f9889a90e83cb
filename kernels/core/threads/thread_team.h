// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <utility>
#include <vector>

namespace attendant {

// The threads that compute together, and their processors. A number alone means threads that the
// system places.
struct ThreadTeam {
  ThreadTeam(int count) : threads(count) {}  // NOLINT: a number is a team
  ThreadTeam(int count, std::vector<int> where, bool each_alone)
      : threads(count), cpus(std::move(where)), one_each(each_alone) {}

  int threads = 1;        // the caller's included
  std::vector<int> cpus;  // processors; empty: all that the process may use
  // Thread i on cpus[i] alone, instead of each on any of them. REQUIRES: cpus.size() >= threads.
  bool one_each = false;

  friend bool operator==(const ThreadTeam&, const ThreadTeam&) = default;
};

// Puts the calling thread where thread `index` of the team belongs; no effect without `cpus`. Where
// the system refuses (a processor went offline), the thread stays where it is: slower, never wrong.
void PlaceThisThread(const ThreadTeam& team, int index);

// The calling thread runs on the team's processors while in scope, so that memory which it is the
// first to touch lies near them.
class ScopedPlacement {
 public:
  explicit ScopedPlacement(const ThreadTeam& team);
  ~ScopedPlacement();
  ScopedPlacement(const ScopedPlacement&) = delete;
  ScopedPlacement& operator=(const ScopedPlacement&) = delete;

 private:
  cpu_set_t* saved_ = nullptr;  // null: it did not move
  size_t saved_bytes_ = 0;
};

}  // namespace attendant
