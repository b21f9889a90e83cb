// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/server.h>

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "server/app/tls_files.h"
#include "server/flags.h"
#include "server/net/connection_acceptor.h"

namespace attendant {

// gRPC, and the acceptor of its connections.
struct GrpcServer {
  std::unique_ptr<TlsFiles> tls_files;  // null: without TLS
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<ConnectionAcceptor> acceptor;  // stops before the server does
};

// Serves `services` on flags.listen, with TLS when the flags name certificates; who reloads its
// tls_files is another's business. `services` and `observer` must outlive the server. An address
// that is in use is an error, never shared.
absl::StatusOr<GrpcServer> StartGrpcServer(const ServerFlags& flags,
                                           std::span<grpc::Service* const> services,
                                           ConnectionObserver& observer);

}  // namespace attendant
