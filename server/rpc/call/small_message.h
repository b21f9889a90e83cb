// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/scan/received_message.h"

namespace attendant {

// Requests of methods that take no tensors have at most so many bytes.
inline constexpr int64_t kMaxSmallMessageBytes = 64 << 10;

// INVALID_ARGUMENT for more than kMaxSmallMessageBytes, and what ScanWire and the parser refuse.
template <typename Request>
absl::Status ReadSmallMessage(grpc::ByteBuffer& bytes, Request& request) {
  if (bytes.Length() > static_cast<size_t>(kMaxSmallMessageBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(Request::descriptor()->full_name(), " has ",
                                                   bytes.Length(), " bytes, the limit is ",
                                                   kMaxSmallMessageBytes));
  }
  WireSummary summary;
  absl::Status status = ScanBuffer(PlainSchema<Request>(), bytes, summary);
  return status.ok() ? ParseBuffer(bytes, request) : status;
}

}  // namespace attendant
