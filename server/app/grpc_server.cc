// SPDX-License-Identifier: Apache-2.0
#include "server/app/grpc_server.h"

#include <grpc/compression.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"
#include "server/app/tls_credentials.h"
#include "server/net/descriptor_limit.h"
#include "server/net/listening_socket.h"
#include "server/threads/thread_room.h"
#include "spdlog/spdlog.h"

namespace attendant {
namespace {

using grpc::experimental::ExternalConnectionAcceptor;

// As many threads as gRPC starts with its first server, or a few more. It does not tell when one is
// refused: it goes on without its timers, or waits for ever.
int GrpcThreads() {
  const int processors = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 4, 32);
  return 6 + processors + processors / 2;
}

// Dead peers are found within two minutes; a client may ping every ten seconds without being called
// abusive.
void SetKeepalive(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 100'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

// gRPC compares a compressed message with max_request_bytes before it decompresses it, and
// decompresses without a bound: 1 MiB of zeros becomes 1 GiB. Without decompression, and with the
// algorithms disabled, gRPC answers a compressed call with UNIMPLEMENTED and the accepted
// encodings.
void RefuseCompression(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
}

void SetLimits(const ServerFlags& flags, grpc::ServerBuilder& builder) {
  constexpr int64_t kLeastQuotaBytes = int64_t{512} << 20;
  builder.SetMaxReceiveMessageSize(static_cast<int>(flags.max_request_bytes));
  builder.SetMaxSendMessageSize(-1);  // max_response_bytes was checked before compute
  builder.SetResourceQuota(
      grpc::ResourceQuota("attendant")
          .Resize(static_cast<size_t>(std::max(kLeastQuotaBytes, 16 * flags.max_request_bytes))));
}

int Milliseconds(int64_t seconds) {
  constexpr int64_t kMost = std::numeric_limits<int>::max() - 1;  // the largest int: never
  return static_cast<int>(std::min(seconds * 1000, kMost));
}

void SetConnectionLimits(const ConnectionLimits& limits, grpc::ServerBuilder& builder) {
  constexpr int kHandshakeMs = 20'000;  // until the client's first frame
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(limits.max_calls));
  if (limits.max_idle_s > 0) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(limits.max_idle_s));
  }
  if (limits.max_age_s > 0) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(limits.max_age_s));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                               Milliseconds(limits.max_age_grace_s));
  }
}

// The connections that the acceptor may hold open at the same time.
ConnectionAcceptor::Limits AcceptorLimits(const ConnectionLimits& limits, const HttpLimits& http) {
  const int64_t descriptors = RaiseDescriptorLimit();
  const int64_t possible =
      GrpcConnectionsWithin(descriptors, http.max_connections + HttpLimits::kPageConnections);
  if (possible < limits.max_connections) {
    spdlog::warn(
        "at most {} connections, not {} (--max_connections): the process may have {} file "
        "descriptors (ulimit -n)",
        possible, limits.max_connections, descriptors);
  }
  return {.max_connections = std::min(limits.max_connections, possible),
          .max_connections_per_address = limits.max_connections_per_address};
}

ConnectionAcceptor::Serve HandOverTo(std::unique_ptr<ExternalConnectionAcceptor> grpc) {
  return [grpc = std::move(grpc)](FileDescriptor fd) {
    ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd.release();
    grpc->HandleNewConnection(&connection);
  };
}

void WarnOfPlaintextGrpc(const ServerFlags& flags, bool loopback) {
  if (loopback || !flags.tls_cert.empty()) return;
  spdlog::warn(
      "--listen {} reaches other machines, and without --tls_cert what they send and get "
      "is not encrypted{}",
      flags.listen, flags.access.api_keys.empty() ? "" : ", API keys included");
}

}  // namespace

absl::StatusOr<GrpcServer> StartGrpcServer(const ServerFlags& flags,
                                           std::span<grpc::Service* const> services,
                                           grpc::CallbackGenericService& others,
                                           ConnectionObserver& observer) {
  ATTENDANT_RETURN_IF_ERROR(CheckThreadRoom(GrpcThreads()));
  ATTENDANT_ASSIGN_OR_RETURN(ListeningSocket socket, ListenOn(flags.listen));
  GrpcServer started;
  if (!flags.tls_cert.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        started.tls_files, TlsFiles::Load({flags.tls_cert, flags.tls_key, flags.tls_client_ca}));
  }
  WarnOfPlaintextGrpc(flags, socket.loopback);
  grpc::ServerBuilder builder;
  SetLimits(flags, builder);
  SetConnectionLimits(flags.connections, builder);
  RefuseCompression(builder);
  SetKeepalive(builder);
  for (grpc::Service* service : services) builder.RegisterService(service);
  builder.RegisterCallbackGenericService(&others);
  std::unique_ptr<ExternalConnectionAcceptor> grpc =
      builder.experimental().AddExternalConnectionAcceptor(
          grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
          MakeServerCredentials(started.tls_files.get()));
  started.server = builder.BuildAndStart();
  if (started.server == nullptr) return absl::UnavailableError("gRPC cannot start its server");
  ATTENDANT_ASSIGN_OR_RETURN(
      started.acceptor,
      ConnectionAcceptor::Start(std::move(socket), AcceptorLimits(flags.connections, flags.http),
                                observer, HandOverTo(std::move(grpc))));
  return started;
}

}  // namespace attendant
