// SPDX-License-Identifier: Apache-2.0
#include "server/batching/running_batches.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/time/time.h"

namespace attendant {
namespace {

absl::Time At(int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

class RunningBatchesTest : public testing::Test {
 protected:
  void Complete(size_t request) { requests_[request].completed = true; }

  QueuedRequest requests_[3];
  const std::vector<BatchItem> first_ = {{&requests_[0], 0}, {&requests_[1], 0}};
  const std::vector<BatchItem> second_ = {{&requests_[1], 1}, {&requests_[2], 0}};
  RunningBatches batches_{3};
};

TEST_F(RunningBatchesTest, AnIdleWorkerDoesNotStall) {
  EXPECT_EQ(batches_.FindStalled(At(1'000'000)), absl::InfiniteFuture());
  EXPECT_EQ(batches_.stalled(), 0);
}

TEST_F(RunningBatchesTest, ABatchStallsAtItsTimeUntilItEnds) {
  batches_.Begin(0, first_, At(10));
  batches_.Begin(2, second_, At(20));
  EXPECT_EQ(batches_.FindStalled(At(9)), At(10));
  EXPECT_EQ(batches_.stalled(), 0);
  EXPECT_EQ(batches_.FindStalled(At(10)), At(20));
  EXPECT_EQ(batches_.stalled(), 1);
  EXPECT_TRUE(batches_.stalled(0));
  EXPECT_FALSE(batches_.stalled(2));
  EXPECT_EQ(batches_.FindStalled(At(20)), absl::InfiniteFuture());
  EXPECT_EQ(batches_.stalled(), 2);
  batches_.End(0);
  EXPECT_FALSE(batches_.stalled(0));
  batches_.Begin(0, first_, At(40));
  EXPECT_EQ(batches_.FindStalled(At(30)), At(40));
  EXPECT_EQ(batches_.stalled(), 1);
}

TEST_F(RunningBatchesTest, ABatchIsAbandonedOnceNoneOfItsRequestsIsOpen) {
  batches_.Begin(0, first_, At(10));
  batches_.Begin(2, second_, At(10));
  Complete(0);
  batches_.Abandon();
  EXPECT_FALSE(*batches_.abandoned(0));
  Complete(1);
  batches_.Abandon();
  EXPECT_TRUE(*batches_.abandoned(0));
  EXPECT_FALSE(*batches_.abandoned(1)) << "it has no batch";
  EXPECT_FALSE(*batches_.abandoned(2));
  batches_.End(0);
  EXPECT_TRUE(*batches_.abandoned(0)) << "until its next one";
  batches_.Begin(0, second_, At(10));
  EXPECT_FALSE(*batches_.abandoned(0));
}

}  // namespace
}  // namespace attendant
