// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "server/flags.h"

namespace attendant {

struct ListeningServer {
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

// Serves `services`, which must outlive the server, and reflection on flags.listen, with TLS when
// the flags name certificates. An address that is in use is an error, never shared.
absl::StatusOr<ListeningServer> StartGrpcServer(const ServerFlags& flags,
                                                std::span<grpc::Service* const> services);

}  // namespace attendant
