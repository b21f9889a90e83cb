// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/kernels/attention_plan.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace attendant::cuda {
namespace {

// The definition, in numbers that cannot overflow.
bool MayMeet(const AttentionRule& rule, int64_t i, int64_t j) {
  return i - rule.keys_before <= j && j <= i + rule.keys_after;
}

const std::vector<int32_t> kSides = {
    0, 1, 2, 3, 5, 7, 15, 16, 17, 63, 64, 65, 100, 129, 200, INT32_MAX - 1, INT32_MAX};

TEST(AttentionRuleTest, AllowedKeysAreTheDefinitionsForEveryQueryAndWindow) {
  for (int32_t before : kSides) {
    for (int32_t after : kSides) {
      const AttentionRule rule = {before, after};
      for (int32_t keys = 0; keys <= 40; ++keys) {
        for (int32_t i = 0; i <= 60; ++i) {  // there may be more queries than keys
          const KeyRange range = AllowedKeys(rule, i, keys);
          ASSERT_LE(range.begin, range.end);
          for (int32_t j = 0; j < keys; ++j) {
            ASSERT_EQ(j >= range.begin && j < range.end, MayMeet(rule, i, j))
                << before << " " << after << " i " << i << " j " << j << " keys " << keys;
          }
          ASSERT_LE(range.end, keys);
        }
      }
    }
  }
}

TEST(AttentionRuleTest, AllowedKeysDoNotOverflowAtTheEnds) {
  const std::vector<int32_t> positions = {0, 1, INT32_MAX / 2, INT32_MAX - 2, INT32_MAX - 1};
  for (int32_t before : kSides) {
    for (int32_t after : kSides) {
      for (int32_t i : positions) {
        for (int32_t keys : {1, 2, INT32_MAX / 2, INT32_MAX - 1, INT32_MAX}) {
          const KeyRange range = AllowedKeys({before, after}, i, keys);
          const int64_t begin = std::clamp<int64_t>(int64_t{i} - before, 0, keys);
          const int64_t end = std::min<int64_t>(keys, int64_t{i} + after + 1);
          EXPECT_EQ(range.begin, begin);
          EXPECT_EQ(range.end, std::max(begin, end));
        }
      }
    }
  }
}

TEST(AttentionRuleTest, BothEndsOfTheRangeGrowWithTheQuery) {
  // What TaskKeys and the kernels' warps rely on.
  for (int32_t before : kSides) {
    for (int32_t after : kSides) {
      for (int32_t keys : {1, 16, 65}) {
        for (int32_t i = 0; i < 300; ++i) {
          const KeyRange one = AllowedKeys({before, after}, i, keys);
          const KeyRange next = AllowedKeys({before, after}, i + 1, keys);
          ASSERT_LE(one.begin, next.begin);
          ASSERT_LE(one.end, next.end);
        }
      }
    }
  }
}

TEST(AttentionRuleTest, TaskKeysCoverWhatItsQueriesSeeAndNoMore) {
  for (int32_t before : kSides) {
    for (int32_t after : kSides) {
      const AttentionRule rule = {before, after};
      for (int32_t queries : {1, 63, 64, 65, 130}) {
        for (int32_t keys : {1, 64, 90, 130, 200}) {
          for (int32_t begin = 0; begin < queries; begin += kTaskQueries) {
            const AttentionTask task = {0, 0, queries, 0, keys, begin};
            const KeyRange range = TaskKeys(rule, task);
            ASSERT_LE(0, range.begin);
            ASSERT_LE(range.begin, range.end);
            ASSERT_LE(range.end, keys);
            for (int32_t j = 0; j < keys; ++j) {
              bool seen = false;
              for (int32_t i = begin; i < std::min(queries, begin + kTaskQueries); ++i) {
                seen = seen || MayMeet(rule, i, j);
              }
              ASSERT_EQ(seen, j >= range.begin && j < range.end)
                  << before << " " << after << " key " << j << " of " << keys << ", query "
                  << begin;
            }
          }
        }
      }
    }
  }
}

std::vector<int64_t> StartsOf(const std::vector<int64_t>& lens) {
  std::vector<int64_t> starts = {0};
  for (int64_t len : lens) starts.push_back(starts.back() + len);
  return starts;
}

// The plan, after a check that it wrote nothing behind what it may.
std::vector<AttentionTask> PlanOf(const std::vector<int64_t>& lens) {
  const std::vector<int64_t> starts = StartsOf(lens);
  const int64_t most = MaxAttentionTasks(starts.back(), static_cast<int64_t>(lens.size()));
  const AttentionTask unwritten = {-7, -7, -7, -7, -7, -7};
  std::vector<AttentionTask> tasks(static_cast<size_t>(most) + 8, unwritten);
  const int64_t count =
      PlanSelfAttention({.seq_starts = starts}, std::span(tasks).first(static_cast<size_t>(most)));
  EXPECT_LE(count, most);
  for (size_t i = static_cast<size_t>(count); i < tasks.size(); ++i) {
    EXPECT_EQ(tasks[i].sequence, -7);
  }
  tasks.resize(static_cast<size_t>(count));
  return tasks;
}

// Each query of each sequence in exactly one task, and each task inside its sequence.
void ExpectCovered(const std::vector<int64_t>& lens, const std::vector<AttentionTask>& tasks) {
  const std::vector<int64_t> starts = StartsOf(lens);
  std::vector<int> covered(static_cast<size_t>(starts.back()), 0);
  for (const AttentionTask& task : tasks) {
    ASSERT_GE(task.sequence, 0);
    ASSERT_LT(task.sequence, static_cast<int32_t>(lens.size()));
    const auto s = static_cast<size_t>(task.sequence);
    EXPECT_EQ(task.query_row, starts[s]);
    EXPECT_EQ(task.key_row, starts[s]);
    EXPECT_EQ(task.queries, lens[s]);
    EXPECT_EQ(task.keys, lens[s]);
    EXPECT_EQ(task.query_begin % kTaskQueries, 0);
    ASSERT_LT(task.query_begin, task.queries);
    for (int64_t i = task.query_begin;
         i < std::min<int64_t>(task.queries, task.query_begin + kTaskQueries); ++i) {
      ++covered[static_cast<size_t>(task.query_row + i)];
    }
  }
  EXPECT_EQ(covered, std::vector<int>(covered.size(), 1));
}

TEST(PlanSelfAttentionTest, CoversEveryQueryOnceCostliestFirst) {
  const std::vector<std::vector<int64_t>> batches = {{1},
                                                     {64},
                                                     {65},
                                                     {1, 1, 1},
                                                     {500, 1, 64, 63, 65, 128, 129, 2, 64, 1000, 3},
                                                     {},
                                                     {0},
                                                     {0, 5, 0, 0, 70, 0},
                                                     {64, 64, 64, 64},
                                                     {16, 17, 15, 200, 16, 17}};
  for (const std::vector<int64_t>& lens : batches) {
    const std::vector<AttentionTask> tasks = PlanOf(lens);
    ExpectCovered(lens, tasks);
    for (size_t i = 1; i < tasks.size(); ++i) {
      const AttentionTask& last = tasks[i - 1];
      const AttentionTask& task = tasks[i];
      EXPECT_TRUE(last.keys > task.keys ||
                  (last.keys == task.keys &&
                   (last.sequence < task.sequence ||
                    (last.sequence == task.sequence && last.query_begin < task.query_begin))));
    }
  }
}

TEST(PlanSelfAttentionTest, EveryPairOfShortLengths) {
  for (int64_t a = 0; a <= 130; ++a) {
    for (int64_t b = 0; b <= 130; b += a % 3 + 1) ExpectCovered({a, b}, PlanOf({a, b}));
  }
}

TEST(PlanSelfAttentionTest, RoomIsNeverMoreThanOneTaskASequenceTooLarge) {
  for (int64_t sequences = 1; sequences <= 5; ++sequences) {
    for (int64_t len = 1; len <= 200; ++len) {
      const std::vector<int64_t> lens(static_cast<size_t>(sequences), len);
      const auto count = static_cast<int64_t>(PlanOf(lens).size());
      EXPECT_LE(MaxAttentionTasks(len * sequences, sequences), count + sequences);
    }
  }
}

TEST(PlanSelfAttentionTest, ASequenceIsCutTheSameWayInAnyBatch) {
  const auto cuts = [](const std::vector<AttentionTask>& tasks, int64_t len) {
    std::set<std::pair<int32_t, int32_t>> seen;
    for (const AttentionTask& task : tasks) {
      if (task.queries == len) seen.insert({task.query_begin, task.keys});
    }
    return seen;
  };
  EXPECT_EQ(cuts(PlanOf({200}), 200), cuts(PlanOf({7, 300, 200, 64, 1}), 200));
}

TEST(PlanSelfAttentionTest, KnowsKeysAndGaps) {
  const std::vector<int64_t> starts = {0, 3, 3, 6, 8};
  const std::vector<int64_t> keys = {2, 0, 3, 1};
  const std::vector<int32_t> positions = {4, 5, 6, 0, 1, 3, 7, 6};
  std::vector<AttentionTask> tasks(8);
  const int64_t count = PlanSelfAttention(
      {.seq_starts = starts, .keys = keys.data(), .positions = positions.data()}, tasks);
  ASSERT_EQ(count, 3);
  const int32_t sequences[] = {2, 0, 3};  // by keys
  const int32_t lens[] = {3, 3, 2}, gaps[] = {1, 0, 1};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(tasks[i].sequence, sequences[i]);
    EXPECT_EQ(tasks[i].queries, lens[i]);
    EXPECT_EQ(tasks[i].keys, keys[static_cast<size_t>(sequences[i])]);
    EXPECT_EQ(tasks[i].gaps, gaps[i]) << i;
  }
}

}  // namespace
}  // namespace attendant::cuda
