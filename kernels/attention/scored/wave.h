// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace attendant::attention {

// Heads of sequences whose intermediate results share one piece of memory. A batch is worked off in
// waves: scratch does not grow with it, and what one phase wrote is still in the cache when the
// next reads it. Which heads share a wave changes no bit of a result.
class Wave {
 public:
  // The bytes that the heads of a wave may take together, unless a single one takes more.
  static constexpr int64_t kFloats = int64_t{1} << 20;

  struct HeadGroup {
    int64_t sequence = 0, head = 0;
    int64_t weights = 0;             // offset of its first weight, where there are any
    int64_t floats = 0;              // memory that it takes,
    std::array<int64_t, 2> tasks{};  // tasks that it has in each of two phases; in the wave, below,
  };                                 // these are the sums of all groups before it

  void Clear() { count_ = 0, groups_[0] = {}; }

  // False, and nothing is added, when that would take more than `limit_floats` or the wave is full.
  bool Add(const HeadGroup& group, int64_t limit_floats) {
    HeadGroup& end = groups_[static_cast<size_t>(count_)];
    if (count_ == kMaxGroups || (count_ > 0 && end.floats + group.floats > limit_floats))
      return false;
    ++count_;
    HeadGroup& next = groups_[static_cast<size_t>(count_)];
    next = {.floats = end.floats + group.floats,
            .tasks = {end.tasks[0] + group.tasks[0], end.tasks[1] + group.tasks[1]}};
    end.sequence = group.sequence, end.head = group.head, end.weights = group.weights;
    return true;
  }

  int64_t count() const { return count_; }
  const HeadGroup& group(int64_t index) const { return groups_[static_cast<size_t>(index)]; }
  int64_t tasks(size_t phase) const { return groups_[static_cast<size_t>(count_)].tasks[phase]; }

  // The group that a task of this phase belongs to.
  const HeadGroup& GroupOf(size_t phase, int64_t task) const {
    const auto after = std::upper_bound(
        groups_.begin(), groups_.begin() + count_, task,
        [phase](int64_t t, const HeadGroup& group) { return t < group.tasks[phase]; });
    return *(after - 1);
  }

 private:
  static constexpr int64_t kMaxGroups = 256;

  int64_t count_ = 0;
  std::array<HeadGroup, kMaxGroups + 1> groups_{};
};

}  // namespace attendant::attention
