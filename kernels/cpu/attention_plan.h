// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/core/packed_batch.h"
#include "kernels/cpu/attention_args.h"

namespace attendant::cpu {

// A piece of a layer's attention that one thread does alone: some heads of one sequence, some of
// its query rows, all of its keys.
struct AttentionTask {
  int64_t sequence = 0;   // its place in the batch
  int64_t seq_start = 0;  // the sequence's first row in the batch
  int64_t len = 0;
  int64_t head_begin = 0;
  int64_t head_end = 0;
  int64_t query_begin = 0;  // within the sequence
  int64_t query_end = 0;

  int64_t scores() const { return (head_end - head_begin) * (query_end - query_begin) * len; }
};

// Fills `tasks` (its memory is reused) with every (sequence, head, query) of the batch exactly
// once, the costliest first. How a sequence is cut depends on that sequence alone.
void PlanAttention(const PackedBatch& batch, int64_t heads, std::vector<AttentionTask>& tasks);

// The most tasks that a batch of so many tokens can make.
int64_t MaxAttentionTasks(int64_t max_tokens, int64_t heads);

// Blocks that rows are cut into, all of about the same height.
struct RowBlocks {
  int64_t rows = 0;
  int64_t granularity = 1;
  int64_t blocks = 0;

  // The first row of block `index`; of `blocks`: rows.
  int64_t begin(int64_t index) const {
    const int64_t units = (rows + granularity - 1) / granularity;
    return std::min(rows, index * units / blocks * granularity);
  }
};

// Blocks of at most `max_rows` rows, cut at multiples of `granularity`, equally many for each
// thread where there is enough for all. REQUIRES: rows > 0, max_rows is a multiple of
// `granularity`.
RowBlocks CutRows(int64_t rows, int64_t max_rows, int64_t granularity, int threads);

}  // namespace attendant::cpu
