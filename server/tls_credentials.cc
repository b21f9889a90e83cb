// SPDX-License-Identifier: Apache-2.0
#include "server/tls_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

absl::Status Unfit(const std::string& path, absl::string_view what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", what, reason == nullptr ? "" : absl::StrCat(" (", reason, ")")));
}

// A folder or a device in place of a PEM file is refused here: OpenSSL would read it.
absl::Status CheckReadable(const std::string& path) {
  constexpr int64_t kMaxPemBytes = int64_t{1} << 20;
  return ReadTextFile(path, kMaxPemBytes).status();
}

// gRPC's provider takes any files, and connections then fail one by one.
absl::Status CheckFiles(const ServerFlags& flags) {
  ATTENDANT_RETURN_IF_ERROR(CheckReadable(flags.tls_cert));
  ATTENDANT_RETURN_IF_ERROR(CheckReadable(flags.tls_key));
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_server_method()),
                                                             SSL_CTX_free);
  if (context == nullptr) return absl::InternalError("OpenSSL cannot be used");
  if (SSL_CTX_use_certificate_chain_file(context.get(), flags.tls_cert.c_str()) != 1) {
    return Unfit(flags.tls_cert, "not a PEM certificate chain");
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), flags.tls_key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Unfit(flags.tls_key,
                 absl::StrCat("not a PEM private key that fits the certificate ", flags.tls_cert));
  }
  if (flags.tls_client_ca.empty()) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(CheckReadable(flags.tls_client_ca));
  if (SSL_CTX_load_verify_locations(context.get(), flags.tls_client_ca.c_str(), nullptr) != 1) {
    return Unfit(flags.tls_client_ca, "no PEM certificates");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerFlags& flags) {
  namespace tls = grpc::experimental;
  if (flags.tls_cert.empty()) return grpc::InsecureServerCredentials();
  ATTENDANT_RETURN_IF_ERROR(CheckFiles(flags));
  const auto reload_s = static_cast<unsigned>(flags.tls_reload_s);
  tls::TlsServerCredentialsOptions options(std::make_shared<tls::FileWatcherCertificateProvider>(
      flags.tls_key, flags.tls_cert, flags.tls_client_ca, reload_s));
  options.watch_identity_key_cert_pairs();
  if (flags.tls_client_ca.empty()) {
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
