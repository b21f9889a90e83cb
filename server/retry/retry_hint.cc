// SPDX-License-Identifier: Apache-2.0
#include "server/retry/retry_hint.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace attendant {
namespace {

constexpr char kPayload[] = "attendant/retry_after_ms";

}  // namespace

void SetRetryAfter(absl::Status& status, absl::Duration delay) {
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(delay, absl::Milliseconds(1)));
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(std::max<int64_t>(ms, 1))));
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  int64_t ms = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &ms)) return std::nullopt;
  return absl::Milliseconds(ms);
}

}  // namespace attendant
