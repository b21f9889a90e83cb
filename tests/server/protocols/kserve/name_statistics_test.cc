// SPDX-License-Identifier: Apache-2.0
#include "server/protocols/kserve/name_statistics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace attendant {
namespace {

NameStatistics::Success SuccessOf(int64_t sequences) {
  return {.sequences = sequences,
          .total = absl::Milliseconds(10),
          .queue = absl::Milliseconds(1),
          .compute_input = absl::Milliseconds(2),
          .compute_infer = absl::Milliseconds(3),
          .compute_output = absl::Milliseconds(4)};
}

TEST(NameStatisticsTest, StartsAtZero) {
  const NameStatisticsSnapshot snapshot = NameStatistics().Snapshot();
  EXPECT_EQ(snapshot.last_inference, absl::UnixEpoch());
  EXPECT_EQ(snapshot.inference_count, 0u);
  EXPECT_EQ(snapshot.execution_count, 0u);
  EXPECT_TRUE(snapshot.batches.empty());
}

TEST(NameStatisticsTest, SumsSuccessesByPhase) {
  NameStatistics statistics;
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  statistics.RecordSuccess(SuccessOf(3), now);
  statistics.RecordSuccess(SuccessOf(1), now - absl::Minutes(1));
  const NameStatisticsSnapshot snapshot = statistics.Snapshot();
  EXPECT_EQ(snapshot.inference_count, 4u);
  EXPECT_EQ(snapshot.last_inference, now) << "answers may be recorded out of order";
  EXPECT_EQ(snapshot.success.count, 2u);
  EXPECT_EQ(snapshot.success.total, absl::Milliseconds(20));
  EXPECT_EQ(snapshot.queue.total, absl::Milliseconds(2));
  EXPECT_EQ(snapshot.compute_input.total, absl::Milliseconds(4));
  EXPECT_EQ(snapshot.compute_infer.total, absl::Milliseconds(6));
  EXPECT_EQ(snapshot.compute_output.total, absl::Milliseconds(8));
  EXPECT_EQ(snapshot.fail.count, 0u);
}

TEST(NameStatisticsTest, FailuresStandApart) {
  NameStatistics statistics;
  statistics.RecordFailure(absl::Milliseconds(5));
  const NameStatisticsSnapshot snapshot = statistics.Snapshot();
  EXPECT_EQ(snapshot.fail.count, 1u);
  EXPECT_EQ(snapshot.fail.total, absl::Milliseconds(5));
  EXPECT_EQ(snapshot.success.count, 0u);
  EXPECT_EQ(snapshot.inference_count, 0u);
  EXPECT_EQ(snapshot.last_inference, absl::UnixEpoch());
}

TEST(NameStatisticsTest, CountsBatchesByTheirSize) {
  NameStatistics statistics;
  statistics.RecordBatch(8, absl::Milliseconds(5));
  statistics.RecordBatch(8, absl::Milliseconds(7));
  statistics.RecordBatch(1, absl::Milliseconds(1));
  const NameStatisticsSnapshot snapshot = statistics.Snapshot();
  EXPECT_EQ(snapshot.execution_count, 3u);
  ASSERT_EQ(snapshot.batches.size(), 2u);
  EXPECT_EQ(snapshot.batches.at(8).compute_infer.count, 2u);
  EXPECT_EQ(snapshot.batches.at(8).compute_infer.total, absl::Milliseconds(12));
}

TEST(NameStatisticsTest, EverySnapshotIsConsistent) {
  NameStatistics statistics;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&statistics] {
      for (int j = 0; j < 1000; ++j) statistics.RecordSuccess(SuccessOf(1), absl::UnixEpoch());
    });
  }
  for (int i = 0; i < 200; ++i) {
    const NameStatisticsSnapshot snapshot = statistics.Snapshot();
    ASSERT_EQ(snapshot.compute_input.count, snapshot.compute_infer.count);
    ASSERT_EQ(snapshot.compute_input.count, snapshot.compute_output.count);
    ASSERT_EQ(snapshot.compute_input.count, snapshot.inference_count);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(statistics.Snapshot().success.count, 4000u);
}

}  // namespace
}  // namespace attendant
