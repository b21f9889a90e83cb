// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/attention_plan.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "kernels/cpu/matmul/matmul.h"

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

TEST(BlockRowsTest, SharesRowsEquallyAndKeepsTheGranularity) {
  EXPECT_EQ(ChooseBlockRows(1, 128, 2), 16);
  EXPECT_EQ(ChooseBlockRows(96, 128, 2), 48);
  EXPECT_EQ(ChooseBlockRows(256, 128, 2), 128);
  EXPECT_EQ(ChooseBlockRows(257, 128, 2), 80);
  for (int64_t tokens = 1; tokens < 3000; tokens += 7) {
    for (int threads : {1, 2, 3, 8}) {
      const int64_t rows = ChooseBlockRows(tokens, 128, threads);
      EXPECT_EQ(rows % kRowGranularity, 0);
      EXPECT_GE(rows, kRowGranularity);
      EXPECT_LE(rows, 128);
    }
  }
}

}  // namespace
}  // namespace attendant::cpu
