// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/call/calls.h"

#include <chrono>
#include <string>

namespace attendant {
namespace {

// Clients accept 8 KiB of trailers by default, and each byte may take three there
// (percent-encoding).
constexpr size_t kMaxMessageBytes = 1024;

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message().substr(0, kMaxMessageBytes)));
}

void AddRetryHint(const absl::Status& status, grpc::CallbackServerContext& context) {
  if (const std::optional<absl::Duration> delay = RetryAfter(status)) {
    context.AddTrailingMetadata("grpc-retry-pushback-ms",
                                std::to_string(absl::ToInt64Milliseconds(*delay)));
  }
}

absl::Time Deadline(const grpc::CallbackServerContext& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return absl::FromChrono(deadline);
}

}  // namespace attendant
