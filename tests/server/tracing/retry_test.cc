// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/export/retry.h"

#include <gtest/gtest.h>

namespace attendant {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'792'000'000);

TEST(RetryTest, KnowsTheCodesOfOtlp) {
  for (const int code : {429, 502, 503, 504}) EXPECT_TRUE(IsRetryableCode(code)) << code;
  for (const int code : {200, 301, 400, 401, 404, 408, 500, 501, 505}) {
    EXPECT_FALSE(IsRetryableCode(code)) << code;
  }
}

TEST(RetryTest, ReadsRetryAfter) {
  EXPECT_EQ(ParseRetryAfter("7", kNow), absl::Seconds(7));
  EXPECT_EQ(ParseRetryAfter("301", kNow), absl::Minutes(5)) << "a bound";
  const std::string date =
      absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", kNow + absl::Seconds(9), absl::UTCTimeZone());
  EXPECT_EQ(ParseRetryAfter(date, kNow), absl::Seconds(9));
  EXPECT_EQ(ParseRetryAfter(date, kNow + absl::Seconds(20)), absl::ZeroDuration());
  for (const char* text : {"", "soon", "-5", "99999999999999999999", "1.5"}) {
    EXPECT_EQ(ParseRetryAfter(text, kNow), absl::ZeroDuration()) << text;
  }
}

TEST(RetryTest, WaitsLongerEachTime) {
  const absl::Duration first = absl::Seconds(1), none = absl::ZeroDuration();
  EXPECT_EQ(RetryDelay(0, first, 0, none), absl::Seconds(1));
  EXPECT_EQ(RetryDelay(0, first, 1, none), absl::Seconds(0.5));
  EXPECT_EQ(RetryDelay(3, first, 0, none), absl::Seconds(8));
  EXPECT_EQ(RetryDelay(5, first, 0, none), absl::Seconds(32));
  EXPECT_EQ(RetryDelay(60, first, 0, none), absl::Seconds(32));
  EXPECT_EQ(RetryDelay(0, first, 0, absl::Seconds(20)), absl::Seconds(20));
  EXPECT_EQ(RetryDelay(5, first, 0, absl::Seconds(20)), absl::Seconds(32));
}

}  // namespace
}  // namespace attendant
