// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/host_device.h"

// The split of attention into tasks and tiles, and the (query, key) pairs that the mask allows.
// Plain arithmetic: the same code runs on the device and on the host, where tests cover it.

namespace attendant::cuda {

// Queries of one task: four warps with 16 rows each.
inline constexpr int32_t kTaskQueries = 64;
// Keys that are in shared memory at a time.
inline constexpr int32_t kTileKeys = 64;

// A side of the window without a limit.
inline constexpr int32_t kAllKeys = INT32_MAX;

// Query i may attend to key j, both counted from their sequence's first, when
// i - keys_before <= j <= i + keys_after: a causal mask is keys_after = 0, and the first query
// faces the first key whatever the two counts are (as in cpu/attention_args.h).
struct AttentionRule {
  int32_t keys_before = kAllKeys;  // in [0, kAllKeys]
  int32_t keys_after = kAllKeys;   // in [0, kAllKeys]
};

struct KeyRange {
  int32_t begin = 0;
  int32_t end = 0;  // one past the last
};

// The keys that `rule` allows query i to see, within [0, keys]. Empty, at `keys`, when the window
// lies behind the last key. Both ends grow with i. (Differences only: a sum would overflow for
// kAllKeys.)
ATTENDANT_HOST_DEVICE inline KeyRange AllowedKeys(const AttentionRule& rule, int32_t i,
                                                  int32_t keys) {
  const int32_t first = i > rule.keys_before ? i - rule.keys_before : 0;
  const int32_t begin = first < keys ? first : keys;
  const int32_t end = keys - 1 - i > rule.keys_after ? i + rule.keys_after + 1 : keys;
  return {begin, end > begin ? end : begin};
}

// One block's work for each head: queries [query_begin, query_begin + kTaskQueries) of a sequence,
// cut at its end.
struct AttentionTask {
  int32_t sequence = 0;
  int32_t query_row = 0;    // of the sequence's first query, in the packed rows
  int32_t queries = 0;      // of the sequence
  int32_t key_row = 0;      // of the sequence's first key
  int32_t keys = 0;         // of the sequence
  int32_t query_begin = 0;  // of the task, in its sequence
  int32_t gaps = 0;         // 1: positions do not follow one another, so rows do not tell distances
};

// The keys that any query of the task may see. The task walks over them in tiles.
ATTENDANT_HOST_DEVICE inline KeyRange TaskKeys(const AttentionRule& rule,
                                               const AttentionTask& task) {
  const int32_t left = task.queries - task.query_begin;
  const int32_t last = task.query_begin + (left < kTaskQueries ? left : kTaskQueries) - 1;
  return {AllowedKeys(rule, task.query_begin, task.keys).begin,
          AllowedKeys(rule, last, task.keys).end};
}

// The largest number of tasks for `tokens` queries in `sequences` sequences.
constexpr int64_t MaxAttentionTasks(int64_t tokens, int64_t sequences) {
  return tokens / kTaskQueries + std::min(tokens, sequences);
}

// Sequences that lie end to end.
struct PackedTokens {
  std::span<const int64_t> seq_starts;  // [sequences + 1]
  const int64_t* keys = nullptr;        // [sequences]: of each the first tokens alone; null: all
  const int32_t* positions = nullptr;   // [tokens]; null: they follow one another
};

// The tasks of self-attention over sequences that lie end to end, the costliest first (blocks start
// in this order, so that the device does not end with a long one): longer sequences before shorter
// ones, equally long ones in their order, a sequence's tasks in the order of their queries. Returns
// how many it wrote; allocates nothing. Sequences of no tokens have no tasks.
// REQUIRES: room for MaxAttentionTasks; seq_starts [sequences + 1], ascending, the last one within
// int32_t.
int64_t PlanSelfAttention(const PackedTokens& tokens, std::span<AttentionTask> tasks);

}  // namespace attendant::cuda
