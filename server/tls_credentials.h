// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/flags.h"

namespace attendant {

// The credentials of the gRPC port: TLS with the files that the flags name, or none. The files are
// read again every flags.tls_reload_s and serve the connections that come after: replace each by a
// rename. While the files of a pair do not fit, connections fail until they do.
// INVALID_ARGUMENT when a file cannot be read now, or certificate and key do not fit; names the
// file.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerFlags& flags);

}  // namespace attendant
