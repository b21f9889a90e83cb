// SPDX-License-Identifier: Apache-2.0
#include "server/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

constexpr int64_t kMaxPemBytes = int64_t{1} << 20;

absl::Status ReadPem(const std::string& path, std::string& text) {
  if (path.empty()) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(text, ReadTextFile(path, kMaxPemBytes));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials(const ServerFlags& flags) {
  if (flags.tls_cert.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      flags.tls_client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                  : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  ATTENDANT_RETURN_IF_ERROR(ReadPem(flags.tls_cert, pair.cert_chain));
  ATTENDANT_RETURN_IF_ERROR(ReadPem(flags.tls_key, pair.private_key));
  ATTENDANT_RETURN_IF_ERROR(ReadPem(flags.tls_client_ca, options.pem_root_certs));
  options.pem_key_cert_pairs.push_back(std::move(pair));
  return grpc::SslServerCredentials(options);
}

// Dead peers are found within two minutes; a client may ping every ten seconds without being called
// abusive.
void SetKeepalive(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 100'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

void SetLimits(const ServerFlags& flags, grpc::ServerBuilder& builder) {
  constexpr int64_t kLeastQuotaBytes = int64_t{512} << 20;
  builder.SetMaxReceiveMessageSize(static_cast<int>(flags.max_request_bytes));
  builder.SetMaxSendMessageSize(-1);  // max_response_bytes was checked before compute
  // Reflection is gRPC's own synchronous service: each of its streams holds a thread.
  constexpr int kMaxSynchronousThreads = 16;
  builder.SetResourceQuota(
      grpc::ResourceQuota("attendant")
          .Resize(static_cast<size_t>(std::max(kLeastQuotaBytes, 16 * flags.max_request_bytes)))
          .SetMaxThreads(kMaxSynchronousThreads));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             static_cast<int>(flags.max_connection_calls));
}

}  // namespace

absl::StatusOr<ListeningServer> StartGrpcServer(const ServerFlags& flags,
                                                std::span<grpc::Service* const> services) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials,
                             Credentials(flags));
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  SetLimits(flags, builder);
  SetKeepalive(builder);
  ListeningServer listening;
  builder.AddListeningPort(flags.listen, credentials, &listening.port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  listening.server = builder.BuildAndStart();
  if (listening.server == nullptr || listening.port == 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on --listen ", flags.listen,
        flags.tls_cert.empty() ? ": the address cannot be read or is in use"
                               : ": the address is in use, or certificate and key do not fit"));
  }
  return listening;
}

}  // namespace attendant
