// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/client_interceptor.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant::client {

// The metadata of a channel's calls, beside their requests.
struct CallMetadata {
  std::string api_key_file;  // its first word goes as 'authorization: Bearer KEY'; empty: none
  // 32 lower-case hexadecimal digits: each call sends a traceparent of this trace, with a span of
  // its own, and a request id. Empty: none.
  std::string trace_id;
};

// The first word of the file; empty without a path. INVALID_ARGUMENT when it cannot be used; the
// error does not repeat the key.
absl::StatusOr<std::string> ReadApiKey(const std::string& path);

// Interceptors that add the metadata to every call of a channel; none when there is nothing to add.
// INVALID_ARGUMENT when the file or the trace's id cannot be used; no error repeats the key.
using Interceptors =
    std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;
absl::StatusOr<Interceptors> MakeInterceptors(const CallMetadata& metadata);

}  // namespace attendant::client
