// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant {

// Most times that a batch of spans is sent.
inline constexpr int kMaxExportAttempts = 6;

// True if OTLP allows a retry after this HTTP code: 429, 502, 503 or 504.
bool IsRetryableCode(int http_code);

// The time until a Retry-After header's moment: a number of seconds, or a date. At most 5 minutes;
// zero for any other text, and for a moment that has passed.
absl::Duration ParseRetryAfter(absl::string_view value, absl::Time now);

// The delay after attempt number `attempt`, from 0: exponential backoff with jitter. It is `first`,
// then twice as long each time, up to 32 times `first`. `dice`, from 0 to 1, takes off up to half,
// so that servers do not retry together. At least `retry_after`.
absl::Duration RetryDelay(int attempt, absl::Duration first, double dice,
                          absl::Duration retry_after);

}  // namespace attendant
