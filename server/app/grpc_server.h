// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/server.h>

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "server/app/goaway.h"
#include "server/app/tls_files.h"
#include "server/flags.h"
#include "server/net/connection_acceptor.h"

namespace attendant {

// gRPC, and the acceptor of its connections.
struct GrpcServer {
  std::unique_ptr<TlsFiles> tls_files;                          // null: without TLS
  std::unique_ptr<Goaway> goaway = std::make_unique<Goaway>();  // ends behind the server
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<ConnectionAcceptor> acceptor;  // ends before the server does
};

// Serves `services`, and `others` for all other methods, on flags.listen, with TLS when the flags
// name certificates; who reloads its tls_files is another's business. The references must outlive
// the server. An address that is in use is an error, never shared. RESOURCE_EXHAUSTED where the
// system refuses threads that gRPC needs.
absl::StatusOr<GrpcServer> StartGrpcServer(const ServerFlags& flags,
                                           std::span<grpc::Service* const> services,
                                           grpc::CallbackGenericService& others,
                                           ConnectionObserver& observer);

}  // namespace attendant
