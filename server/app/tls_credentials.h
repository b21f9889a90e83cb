// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/app/tls_files.h"

namespace attendant {

// The credentials of the gRPC port: TLS with `files`, which must outlive the server, or, where they
// are null, none. Files that were reloaded serve the connections that come a second later.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsFiles* files);

}  // namespace attendant
