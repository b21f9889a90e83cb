// SPDX-License-Identifier: Apache-2.0
#include "server/retry/retry_hint.h"

#include <gtest/gtest.h>

namespace attendant {
namespace {

TEST(RetryHintTest, RidesOnTheStatus) {
  absl::Status status = absl::ResourceExhaustedError("full");
  EXPECT_FALSE(RetryAfter(status).has_value());
  SetRetryAfter(status, absl::Microseconds(1500));
  EXPECT_EQ(RetryAfter(status), absl::Milliseconds(2));
  SetRetryAfter(status, absl::ZeroDuration());
  EXPECT_EQ(RetryAfter(status), absl::Milliseconds(1));
}

}  // namespace
}  // namespace attendant
