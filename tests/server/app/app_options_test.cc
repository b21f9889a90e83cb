// SPDX-License-Identifier: Apache-2.0
#include "server/app/app_options.h"

#include <gtest/gtest.h>

namespace attendant {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(AppOptionsTest, FlagsReachTheBatcher) {
  ServerFlags flags;
  flags.max_batch_tokens = 64;
  flags.max_batch_sequences = 7;
  flags.max_queued_tokens = 1000;
  flags.max_queued_requests = 9;
  flags.max_queue_delay_us = 1500;
  flags.max_priority = 3;
  flags.max_priority_wait_ms = 250;
  flags.stall_timeout_s = 11;
  const BatcherOptions batcher = MakeModelOptions(flags, 1).batcher;
  EXPECT_EQ(batcher.max_batch_tokens, 64);
  EXPECT_EQ(batcher.max_batch_sequences, 7);
  EXPECT_EQ(batcher.max_queued_tokens, 1000);
  EXPECT_EQ(batcher.max_queued_requests, 9);
  EXPECT_EQ(batcher.max_queue_delay, absl::Microseconds(1500));
  EXPECT_EQ(batcher.max_priority, 3);
  EXPECT_EQ(batcher.max_priority_wait, absl::Milliseconds(250));
  EXPECT_EQ(batcher.stall_timeout, absl::Seconds(11));
}

TEST(AppOptionsTest, ABatchFitsTheQueue) {
  ServerFlags flags;
  flags.max_queued_tokens = 100;
  EXPECT_EQ(MakeModelOptions(flags, 1).batcher.max_batch_tokens, 100);
}

TEST(AppOptionsTest, AttentionHasLimitsOfItsOwn) {
  ServerFlags flags;
  flags.max_queued_tokens = 1000;
  flags.attention = {
      .max_tokens = 1001, .max_bytes = 5000, .max_operations = 70, .max_queued_operations = 80};
  flags.attention_nice = 7;
  const ModelOptions options = MakeModelOptions(flags, 1);
  EXPECT_EQ(options.attention.max_tokens, 1001) << "the queue of tokens is that of encoders";
  EXPECT_EQ(options.attention.max_bytes, 5000);
  EXPECT_EQ(options.attention.max_operations, 70);
  EXPECT_EQ(options.attention.max_queued_operations, 80);
  EXPECT_EQ(options.attention_nice, 7);
}

TEST(AppOptionsTest, EachReplicaHasASlotThatModelsShare) {
  ServerFlags flags;
  flags.threads = 2;
  flags.replicas = 2;
  const ModelOptions options = MakeModelOptions(flags, 3);
  ASSERT_EQ(options.compute_slots.size(), 2u);
  EXPECT_EQ(options.replicas.size(), 2u);
  EXPECT_NE(options.compute_slots[0], options.compute_slots[1]);
}

TEST(AppOptionsTest, AConnectionGetsAPartOfTheMemory) {
  ServerFlags flags;
  flags.max_request_bytes = 16 * kMiB;
  flags.encode.max_response_bytes = 8 * kMiB;
  const auto parts = [&](int64_t budget) {
    flags.memory.max_pending_request_bytes = flags.memory.max_pending_response_bytes = budget;
    const MemoryLimits limits = MakeMemoryLimits(flags);
    EXPECT_EQ(limits.max_pending_request_bytes, budget);
    return std::pair(limits.connection_request_bytes, limits.connection_response_bytes);
  };
  EXPECT_EQ(parts(512 * kMiB), std::pair(128 * kMiB, 128 * kMiB));
  EXPECT_EQ(parts(200 * kMiB), std::pair(72 * kMiB, 50 * kMiB));
  EXPECT_EQ(parts(60 * kMiB), std::pair(60 * kMiB, 40 * kMiB));
}

TEST(AppOptionsTest, AStreamHoldsTwoOfTheLargestRequests) {
  ServerFlags flags;
  flags.max_request_bytes = 3 * kMiB;
  flags.streams.max_requests = 5;
  EXPECT_EQ(MakeStreamLimits(flags).max_bytes, 6 * kMiB);
  EXPECT_EQ(MakeStreamLimits(flags).max_requests, 5);
}

}  // namespace
}  // namespace attendant
