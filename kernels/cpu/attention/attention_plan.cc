// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/attention_plan.h"

#include <algorithm>

#include "kernels/cpu/matmul/matmul.h"

namespace attendant::cpu {
namespace {

// Scores of one task at the least, by taking several heads: below that handing out the task costs
// as much as doing it.
constexpr int64_t kMinTaskScores = 4096;

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

void PlanSequence(const PackedBatch& batch, int64_t sequence, int64_t heads,
                  std::vector<AttentionTask>& tasks) {
  const int64_t len = batch.len(sequence);
  const int64_t queries = CeilDivide(len, CeilDivide(len, kMaxTaskQueries));
  const int64_t heads_per_task = std::clamp<int64_t>(kMinTaskScores / (queries * len), 1, heads);
  for (int64_t head = 0; head < heads; head += heads_per_task) {
    for (int64_t query = 0; query < len; query += queries) {
      tasks.push_back({.sequence = sequence,
                       .seq_start = batch.seq_start(sequence),
                       .len = len,
                       .head_begin = head,
                       .head_end = std::min(head + heads_per_task, heads),
                       .query_begin = query,
                       .query_end = std::min(query + queries, len)});
    }
  }
}

}  // namespace

void PlanAttention(const PackedBatch& batch, int64_t heads, std::vector<AttentionTask>& tasks) {
  tasks.clear();
  for (int64_t i = 0; i < batch.batch(); ++i) {
    PlanSequence(batch, i, heads, tasks);
  }
  std::sort(tasks.begin(), tasks.end(),
            [](const AttentionTask& a, const AttentionTask& b) { return a.scores() > b.scores(); });
}

int64_t MaxAttentionTasks(int64_t max_tokens, int64_t heads) {
  // A task has at least one token of its own for each head that it leaves to others.
  return max_tokens * heads;
}

int64_t ChooseBlockRows(int64_t tokens, int64_t max_rows, int threads) {
  const int64_t rounds = CeilDivide(tokens, max_rows * threads);
  const int64_t rows = RoundUpRows(CeilDivide(tokens, rounds * threads));
  return std::min(rows, max_rows);
}

}  // namespace attendant::cpu
