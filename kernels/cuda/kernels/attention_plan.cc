// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/kernels/attention_plan.h"

#include <cstddef>

namespace attendant::cuda {
namespace {

constexpr int64_t NumTasks(int64_t queries) { return (queries + kTaskQueries - 1) / kTaskQueries; }

}  // namespace

int64_t PlanSelfAttention(std::span<const int64_t> seq_starts, std::span<AttentionTask> tasks) {
  // A task's time is its keys', as a block's warps share the queries; so whole sequences are
  // sorted, one entry each at the front of `tasks`.
  int64_t sequences = 0;
  int64_t count = 0;
  for (size_t s = 0; s + 1 < seq_starts.size(); ++s) {
    const int64_t len = seq_starts[s + 1] - seq_starts[s];
    if (len == 0) continue;
    const auto row = static_cast<int32_t>(seq_starts[s]);
    const auto keys = static_cast<int32_t>(len);
    tasks[static_cast<size_t>(sequences)] = {static_cast<int32_t>(s), row, keys, row, keys, 0};
    ++sequences;
    count += NumTasks(len);
  }
  std::sort(tasks.data(), tasks.data() + sequences,
            [](const AttentionTask& a, const AttentionTask& b) {
              return a.keys != b.keys ? a.keys > b.keys : a.sequence < b.sequence;
            });

  // Then each entry becomes its sequence's tasks, the last one first: entry s moves to a place at
  // or behind s, so what is yet to be read is never overwritten.
  int64_t end = count;
  for (int64_t s = sequences - 1; s >= 0; --s) {
    AttentionTask task = tasks[static_cast<size_t>(s)];
    const int64_t begin = end - NumTasks(task.queries);
    for (int64_t i = begin; i < end; ++i) {
      task.query_begin = static_cast<int32_t>((i - begin) * kTaskQueries);
      tasks[static_cast<size_t>(i)] = task;
    }
    end = begin;
  }
  return count;
}

}  // namespace attendant::cuda
