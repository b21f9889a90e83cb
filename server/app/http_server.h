// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/flags.h"
#include "server/http/connection/tls_context.h"
#include "server/http/doors/door_call.h"
#include "server/http/port/http_endpoint.h"
#include "server/protocols/attention/attend_run.h"
#include "server/threads/periodic_thread.h"

namespace attendant {

// The HTTP port, and its certificates, which are read again while it serves.
struct HttpServer {
  std::unique_ptr<TlsContext> tls;  // null: without TLS
  std::unique_ptr<PeriodicThread> tls_reload;
  std::unique_ptr<HttpEndpoint> endpoint;  // ends before the others do
};

// Serves on flags.http_listen the protocols and pages that the flags select. The references, and
// what they refer to, must outlive the server. An error names the flag and the address.
absl::StatusOr<HttpServer> StartHttpServer(const ServerFlags& flags, const DoorDependencies& doors,
                                           const AttendDependencies& attend);

}  // namespace attendant
