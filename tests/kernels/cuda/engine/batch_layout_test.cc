// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/batch_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "kernels/cuda/kernels/attention_plan.h"
#include "kernels/cuda/kernels/kernels.h"
#include "tests/support/cuda/encoder_case.h"

namespace attendant::cuda {
namespace {

using cuda_test::PackedSequences;

TEST(BucketTest, HoldsItsTokensAndWastesLittle) {
  for (int64_t tokens = 1; tokens <= 20000; ++tokens) {
    const int64_t bucket = BucketTokens(tokens);
    ASSERT_GE(bucket, tokens);
    ASSERT_EQ(bucket % 16, 0);
    const int64_t waste = bucket - tokens;
    ASSERT_LT(waste, tokens <= 128 ? 16 : tokens <= 1024 ? 64 : 128) << tokens;
    ASSERT_EQ(BucketTokens(bucket), bucket) << "a bucket is its own";
    if (tokens > 1) {
      ASSERT_GE(bucket, BucketTokens(tokens - 1));
    }
  }
}

TEST(BucketTest, ListsEveryBucketOnce) {
  for (const int64_t max_tokens : {1, 16, 17, 128, 129, 1000, 1024, 1025, 16384}) {
    const std::vector<int64_t> buckets = ListBuckets(max_tokens);
    std::vector<int64_t> expected;
    for (int64_t tokens = 1; tokens <= max_tokens; ++tokens) {
      const int64_t bucket = BucketTokens(tokens);
      if (expected.empty() || expected.back() != bucket) expected.push_back(bucket);
    }
    EXPECT_EQ(buckets, expected) << max_tokens;
  }
  EXPECT_EQ(ListBuckets(1024).size(), 22u) << "so many graphs a session has at most";
}

TEST(RowClassTest, EveryBucketLiesInItsClass) {
  for (const int64_t bucket : ListBuckets(int64_t{1} << 20)) {
    const int row_class = RowClass(bucket);
    EXPECT_GE(bucket, SmallestOfClass(row_class)) << bucket;
    EXPECT_LE(bucket, LargestOfClass(row_class)) << bucket;
  }
  for (int row_class = 0; row_class <= 16; ++row_class) {
    EXPECT_EQ(RowClass(SmallestOfClass(row_class)), row_class);
    EXPECT_EQ(RowClass(LargestOfClass(row_class)), row_class);
    EXPECT_EQ(BucketTokens(SmallestOfClass(row_class)), SmallestOfClass(row_class));
    EXPECT_EQ(BucketTokens(LargestOfClass(row_class)), LargestOfClass(row_class));
  }
}

struct Part {
  int64_t begin, bytes;
};

std::vector<Part> PartsOf(const BatchLayout& layout, int64_t bucket, int64_t sequences,
                          bool scales) {
  const int64_t ids = bucket * 4;
  return {{layout.counts, sizeof(BatchCounts)},
          {layout.token_ids, ids},
          {layout.positions, ids},
          {layout.segment_ids, ids},
          {layout.token_scales, scales ? ids : 0},
          {layout.seq_starts, (sequences + 1) * 4},
          {layout.tasks,
           MaxAttentionTasks(bucket, sequences) * static_cast<int64_t>(sizeof(AttentionTask))},
          {layout.pool_tasks, sequences * static_cast<int64_t>(sizeof(PoolTask))}};
}

TEST(BatchLayoutTest, PartsAreAlignedAndApart) {
  for (const int64_t bucket : ListBuckets(4096)) {
    for (const int64_t max_sequences : {1, 2, 3, 7, 64, 1000, 5000}) {
      const bool scales = max_sequences % 2 == 0;
      const BatchLayout layout = LayOutBatch(bucket, max_sequences, scales);
      int64_t end = 0;
      for (const Part& part : PartsOf(layout, bucket, std::min(bucket, max_sequences), scales)) {
        ASSERT_EQ(part.begin % 16, 0);
        ASSERT_GE(part.begin, end) << "overlaps the part before it";
        ASSERT_LT(part.begin, end + 16) << "a gap";
        end = part.begin + part.bytes;
      }
      ASSERT_GE(layout.bytes, end);
      ASSERT_LT(layout.bytes, end + 16);
    }
  }
}

TEST(BatchLayoutTest, DependsOnTheBucketOnly) {
  EXPECT_EQ(LayOutBatch(BucketTokens(65), 8, false), LayOutBatch(BucketTokens(80), 8, false));
  EXPECT_NE(LayOutBatch(80, 8, false), LayOutBatch(96, 8, false));
}

template <typename T>
T Read(const std::vector<std::byte>& block, int64_t offset, int64_t index) {
  T value;
  std::memcpy(&value, block.data() + offset + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

void ExpectWritten(const PackedSequences& sequences, int64_t max_sequences) {
  const AttendantCudaBatch batch = sequences.view();
  std::vector<AttendantCudaSequenceOutputs> wanted;
  for (int64_t i = 0; i < batch.batch; ++i) {
    wanted.push_back({.last_hidden_state = 0,
                      .pooling = static_cast<int32_t>(i % 5),
                      .normalize = static_cast<int32_t>(i % 2),
                      .dims = i % 3 == 0 ? 0 : i % 60 + 1});
  }
  const BatchLayout layout =
      LayOutBatch(BucketTokens(batch.tokens), max_sequences, batch.token_scales != nullptr);
  constexpr std::byte kGuard{0x5a};
  std::vector<std::byte> block(static_cast<size_t>(layout.bytes) + 64, kGuard);
  const BatchCounts counts = WriteBatch(batch, wanted.data(), 64, layout, block.data());

  EXPECT_EQ(counts.tokens, batch.tokens);
  EXPECT_EQ(counts.sequences, batch.batch);
  EXPECT_EQ(Read<BatchCounts>(block, layout.counts, 0).attention_tasks, counts.attention_tasks);
  for (int64_t t = 0; t < batch.tokens; ++t) {
    ASSERT_EQ(Read<int32_t>(block, layout.token_ids, t), batch.token_ids[t]);
    ASSERT_EQ(Read<int32_t>(block, layout.positions, t), batch.positions[t]);
    ASSERT_EQ(Read<int32_t>(block, layout.segment_ids, t), batch.segment_ids[t]);
    if (batch.token_scales == nullptr) continue;
    ASSERT_EQ(Read<float>(block, layout.token_scales, t), batch.token_scales[t]);
  }
  int64_t queries = 0;
  for (int64_t i = 0; i < counts.attention_tasks; ++i) {
    const auto task = Read<AttentionTask>(block, layout.tasks, i);
    ASSERT_EQ(task.query_row, batch.seq_starts[task.sequence]);
    queries += std::min(kTaskQueries, task.queries - task.query_begin);
  }
  EXPECT_EQ(queries, batch.tokens) << "each query has one task";
  for (int64_t i = 0; i < batch.batch; ++i) {
    ASSERT_EQ(Read<int32_t>(block, layout.seq_starts, i + 1), batch.seq_starts[i + 1]);
    const auto task = Read<PoolTask>(block, layout.pool_tasks, i);
    ASSERT_EQ(task.pooling, wanted[static_cast<size_t>(i)].pooling);
    ASSERT_EQ(task.normalize, wanted[static_cast<size_t>(i)].normalize);
    ASSERT_EQ(task.dims, i % 3 == 0 ? 64 : i % 60 + 1) << "0 stands for all";
  }
  EXPECT_TRUE(std::all_of(block.end() - 64, block.end(), [&](std::byte b) { return b == kGuard; }));
}

TEST(WriteBatchTest, EverythingIsWhereTheLayoutSays) {
  const AttendantCudaConfig config = cuda_test::SmallConfig();
  for (int64_t len = 1; len <= 256; ++len) {
    ExpectWritten(cuda_test::RandomBatch(config, {len}, 1), 1);
  }
  ExpectWritten(cuda_test::RandomBatch(config, std::vector<int64_t>(128, 1), 2), 128);
  ExpectWritten(cuda_test::RandomBatch(config, {64, 65, 63, 1, 128, 129}, 3), 500);
  AttendantCudaConfig scaled = config;
  scaled.scales_tokens = 1;
  ExpectWritten(cuda_test::RandomBatch(scaled, {64, 1, 130}, 4), 5);
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int64_t> lens(random() % 40 + 1);
    for (int64_t& len : lens) len = static_cast<int64_t>(random() % 200 + 1);
    ExpectWritten(cuda_test::RandomBatch(config, lens, static_cast<uint32_t>(trial)), 40);
  }
}

}  // namespace
}  // namespace attendant::cuda
