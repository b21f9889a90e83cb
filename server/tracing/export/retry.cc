// SPDX-License-Identifier: Apache-2.0
#include "server/tracing/export/retry.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"

namespace attendant {
namespace {

constexpr absl::Duration kMaxRetryAfter = absl::Minutes(5);
constexpr char kHttpDate[] = "%a, %d %b %Y %H:%M:%S GMT";

}  // namespace

bool IsRetryableCode(int http_code) {
  return http_code == 429 || http_code == 502 || http_code == 503 || http_code == 504;
}

absl::Duration ParseRetryAfter(absl::string_view value, absl::Time now) {
  int64_t seconds = 0;
  absl::Time date;
  absl::Duration left;
  if (absl::SimpleAtoi(value, &seconds)) {
    left = absl::Seconds(seconds);
  } else if (absl::ParseTime(kHttpDate, value, &date, nullptr)) {
    left = date - now;
  }
  return std::clamp(left, absl::ZeroDuration(), kMaxRetryAfter);
}

absl::Duration RetryDelay(int attempt, absl::Duration first, double dice,
                          absl::Duration retry_after) {
  constexpr int kMaxDoublings = 5;
  const absl::Duration delay = first * (int64_t{1} << std::min(attempt, kMaxDoublings));
  return std::max(delay * (1 - dice / 2), retry_after);
}

}  // namespace attendant
