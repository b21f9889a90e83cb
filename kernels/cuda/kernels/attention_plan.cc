// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/kernels/attention_plan.h"

#include <cstddef>

namespace attendant::cuda {
namespace {

constexpr int64_t NumTasks(int64_t queries) { return (queries + kTaskQueries - 1) / kTaskQueries; }

bool HasGaps(const int32_t* positions, int64_t len) {
  for (int64_t i = 1; i < len; ++i) {
    if (positions[i] != positions[i - 1] + 1) return true;
  }
  return false;
}

AttentionTask FirstTask(const PackedTokens& tokens, size_t sequence) {
  const int64_t begin = tokens.seq_starts[sequence];
  const int64_t len = tokens.seq_starts[sequence + 1] - begin;
  const int64_t keys = tokens.keys == nullptr ? len : tokens.keys[sequence];
  const auto row = static_cast<int32_t>(begin);
  return {.sequence = static_cast<int32_t>(sequence),
          .query_row = row,
          .queries = static_cast<int32_t>(len),
          .key_row = row,
          .keys = static_cast<int32_t>(keys),
          .gaps = tokens.positions != nullptr && HasGaps(tokens.positions + begin, len) ? 1 : 0};
}

}  // namespace

int64_t PlanSelfAttention(const PackedTokens& tokens, std::span<AttentionTask> tasks) {
  // A task's time is its keys', as a block's warps share the queries; so whole sequences are
  // sorted, one entry each at the front of `tasks`.
  int64_t sequences = 0;
  int64_t count = 0;
  for (size_t s = 0; s + 1 < tokens.seq_starts.size(); ++s) {
    const AttentionTask task = FirstTask(tokens, s);
    if (task.queries == 0) continue;
    tasks[static_cast<size_t>(sequences)] = task;
    ++sequences;
    count += NumTasks(task.queries);
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
