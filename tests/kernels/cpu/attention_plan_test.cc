// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention_plan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <tuple>

namespace attendant::cpu {
namespace {

PackedBatch BatchOf(const std::vector<int64_t>& lens) {
  PackedBatch batch;
  for (int64_t len : lens) {
    const std::vector<int32_t> zeros(static_cast<size_t>(len), 0);
    batch.Append(zeros, zeros, zeros);
  }
  return batch;
}

TEST(AttentionPlanTest, CoversEveryHeadAndQueryOnceAndCostliestFirst) {
  constexpr int64_t kHeads = 12;
  const std::vector<int64_t> lens = {1, 500, 16, 240, 241, 64, 1000, 2};
  const PackedBatch batch = BatchOf(lens);
  std::vector<AttentionTask> tasks;
  PlanAttention(batch, kHeads, tasks);

  std::set<std::tuple<int64_t, int64_t>> seen;  // (row of the batch, head)
  int64_t last_scores = tasks.front().scores();
  for (const AttentionTask& task : tasks) {
    EXPECT_LE(task.scores(), last_scores);
    EXPECT_LE(task.query_end - task.query_begin, kMaxTaskQueries);
    EXPECT_LE(task.query_end, task.len);
    last_scores = task.scores();
    for (int64_t head = task.head_begin; head < task.head_end; ++head) {
      for (int64_t query = task.query_begin; query < task.query_end; ++query) {
        EXPECT_TRUE(seen.insert({task.seq_start + query, head}).second);
      }
    }
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), batch.tokens() * kHeads);
  EXPECT_LE(static_cast<int64_t>(tasks.size()), MaxAttentionTasks(batch.tokens(), kHeads));
}

TEST(AttentionPlanTest, ASequenceIsCutTheSameWayInAnyBatch) {
  std::vector<AttentionTask> alone, together;
  PlanAttention(BatchOf({700}), 4, alone);
  PlanAttention(BatchOf({3, 700, 90}), 4, together);
  std::erase_if(together, [](const AttentionTask& task) { return task.len != 700; });
  ASSERT_EQ(together.size(), alone.size());
  const auto queries = [](const std::vector<AttentionTask>& tasks) {
    std::set<std::tuple<int64_t, int64_t, int64_t>> cuts;
    for (const AttentionTask& t : tasks) cuts.insert({t.head_begin, t.query_begin, t.query_end});
    return cuts;
  };
  EXPECT_EQ(queries(alone), queries(together));
}

TEST(CutRowsTest, SharesRowsEquallyAndKeepsTheGranularity) {
  EXPECT_EQ(CutRows(1, 128, 16, 2).blocks, 1);
  EXPECT_EQ(CutRows(96, 128, 16, 2).begin(1), 48);
  EXPECT_EQ(CutRows(256, 128, 1, 2).begin(1), 128);
  EXPECT_EQ(CutRows(257, 128, 1, 2).blocks, 4);
  EXPECT_EQ(CutRows(257, 128, 16, 2).begin(1), 64);
  for (int64_t tokens = 1; tokens < 3000; tokens += 7) {
    for (int threads : {1, 2, 3, 8}) {
      for (int64_t granularity : {1, 16}) {
        const RowBlocks cut = CutRows(tokens, 128, granularity, threads);
        EXPECT_EQ(cut.begin(0), 0);
        EXPECT_EQ(cut.begin(cut.blocks), tokens);
        for (int64_t i = 0; i < cut.blocks; ++i) {
          const int64_t rows = cut.begin(i + 1) - cut.begin(i);
          EXPECT_EQ(cut.begin(i) % granularity, 0);
          EXPECT_GT(rows, 0);
          EXPECT_LE(rows, 128);
          EXPECT_LT(std::abs(rows - tokens / cut.blocks), 2 * granularity);
        }
      }
    }
  }
}

}  // namespace
}  // namespace attendant::cpu
