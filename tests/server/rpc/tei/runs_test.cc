// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/tei/runs.h"

#include <gtest/gtest.h>

#include "absl/time/time.h"

namespace attendant::tei {
namespace {

TEST(TeiRunsTest, TruncationIsOnTheSideThatTheRequestNames) {
  EXPECT_EQ(TruncationFromProto(true, v1::TRUNCATION_DIRECTION_RIGHT).value(), Truncation::kRight);
  EXPECT_EQ(TruncationFromProto(true, v1::TRUNCATION_DIRECTION_LEFT).value(), Truncation::kLeft);
  for (const auto side : {v1::TRUNCATION_DIRECTION_RIGHT, v1::TRUNCATION_DIRECTION_LEFT}) {
    EXPECT_EQ(TruncationFromProto(false, side).value(), Truncation::kNone);
  }
  const auto unknown = static_cast<v1::TruncationDirection>(7);
  EXPECT_EQ(TruncationFromProto(true, unknown).status().message(),
            "truncation_direction is 7, it must be 0 or 1");
}

TEST(TeiRunsTest, EachTimeHasItsField) {
  RequestTimes times;
  times.arrival = SteadyNow() - absl::Seconds(100);
  times.decode = absl::Nanoseconds(1);
  times.queue = absl::Nanoseconds(2);
  times.compute = absl::Nanoseconds(3);
  times.serialize = absl::Nanoseconds(4);
  v1::Metadata metadata;
  SetMetadata(times, 5, 6, metadata);
  EXPECT_EQ(metadata.tokenization_time_ns(), 1u);
  EXPECT_EQ(metadata.queue_time_ns(), 2u);
  EXPECT_EQ(metadata.inference_time_ns(), 3u);
  EXPECT_GE(metadata.total_time_ns(), uint64_t{100'000'000'000});
  EXPECT_EQ(metadata.compute_chars(), 5u);
  EXPECT_EQ(metadata.compute_tokens(), 6u);
}

}  // namespace
}  // namespace attendant::tei
