// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/batching/retry_hint.h"
#include "server/rpc/call/status_translation.h"

namespace attendant {

// Completes an answer of one of attendant.v1's streams: the request's id, and in place of the
// response what went wrong.
template <typename StreamAnswer>
void FillStreamAnswer(const std::string& id, const absl::Status& status, StreamAnswer& answer) {
  answer.set_id(id);
  if (status.ok()) return;
  const grpc::Status error = ToGrpcStatus(status);
  answer.mutable_error()->set_code(error.error_code());
  answer.mutable_error()->set_message(error.error_message());
  const std::optional<absl::Duration> delay = RetryAfter(status);
  if (delay.has_value()) {
    answer.mutable_error()->set_retry_after_ms(absl::ToInt64Milliseconds(*delay));
  }
}

}  // namespace attendant
