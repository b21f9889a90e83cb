// SPDX-License-Identifier: Apache-2.0
#include "server/app/tls_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <string>

namespace attendant {

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsFiles* files) {
  namespace tls = grpc::experimental;
  if (files == nullptr) return grpc::InsecureServerCredentials();
  constexpr unsigned kLookEverySecond = 1;
  tls::TlsServerCredentialsOptions options(std::make_shared<tls::FileWatcherCertificateProvider>(
      files->pair_path(), files->pair_path(), files->client_ca_path(), kLookEverySecond));
  options.watch_identity_key_cert_pairs();
  if (files->client_ca_path().empty()) {
    options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  } else {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    // A client is known by its certificate, not by the host that it calls from.
    options.set_check_call_host(false);
  }
  return tls::TlsServerCredentials(options);
}

}  // namespace attendant
