// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/attention_plan.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/cpu/simd/attention/attention_args.h"

namespace attendant::cpu {
namespace {

// The pieces of self-attention over sequences of these lengths.
std::vector<AttentionPiece> Plan(const std::vector<int64_t>& lens, int64_t heads) {
  std::vector<AttentionPlan::Sequence> memory(lens.size() + 1);
  AttentionPlan plan(memory.data());
  plan.Fill(static_cast<int64_t>(lens.size()), {.heads = heads, .most_queries = kMaxTaskQueries},
            [&](int64_t i) {
              const int64_t len = lens[static_cast<size_t>(i)];
              return AttentionPlan::Lens{len, len};
            });
  std::vector<AttentionPiece> pieces;
  for (int64_t i = 0; i < plan.size(); ++i) pieces.push_back(plan[i]);
  return pieces;
}

TEST(AttentionPlanTest, CoversEveryHeadAndQueryOnceAndCostliestFirst) {
  constexpr int64_t kHeads = 12;
  const std::vector<int64_t> lens = {1, 500, 16, 256, 257, 64, 1000, 2};
  const std::vector<AttentionPiece> tasks = Plan(lens, kHeads);

  std::set<std::tuple<int64_t, int64_t, int64_t>> seen;  // (sequence, query, head)
  int64_t last_scores = tasks.front().scores();
  for (const AttentionPiece& task : tasks) {
    EXPECT_LE(task.scores(), last_scores);
    EXPECT_LE(task.query_end - task.query_begin, kMaxTaskQueries);
    EXPECT_EQ(task.keys, lens[static_cast<size_t>(task.sequence)]);
    EXPECT_LE(task.query_end, task.keys);
    int64_t before = 0;
    for (int64_t i = 0; i < task.sequence; ++i) {
      before += lens[static_cast<size_t>(i)] * lens[static_cast<size_t>(i)];
    }
    EXPECT_EQ(task.scores_before, before);
    last_scores = task.scores();
    for (int64_t head = task.head_begin; head < task.head_end; ++head) {
      for (int64_t query = task.query_begin; query < task.query_end; ++query) {
        EXPECT_TRUE(seen.insert({task.sequence, query, head}).second);
      }
    }
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()),
            std::accumulate(lens.begin(), lens.end(), int64_t{0}) * kHeads);
}

TEST(AttentionPlanTest, ASequenceIsCutTheSameWayInAnyBatch) {
  const std::vector<AttentionPiece> alone = Plan({700}, 4);
  std::vector<AttentionPiece> together = Plan({3, 700, 90}, 4);
  std::erase_if(together, [](const AttentionPiece& task) { return task.keys != 700; });
  ASSERT_EQ(together.size(), alone.size());
  const auto queries = [](const std::vector<AttentionPiece>& tasks) {
    std::set<std::tuple<int64_t, int64_t, int64_t>> cuts;
    for (const AttentionPiece& t : tasks) cuts.insert({t.head_begin, t.query_begin, t.query_end});
    return cuts;
  };
  EXPECT_EQ(queries(alone), queries(together));
}

}  // namespace
}  // namespace attendant::cpu
