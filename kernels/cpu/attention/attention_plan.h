// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/packed_batch.h"
#include "kernels/cpu/attention/attention_args.h"

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

// Rows of the blocks that `tokens` rows are cut into: a multiple of kRowGranularity, at most
// `max_rows`, such that the threads get equally much where there is enough for all.
int64_t ChooseBlockRows(int64_t tokens, int64_t max_rows, int threads);

}  // namespace attendant::cpu
