// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection/tls_context.h"

#include <cstdint>
// Boost 1.74 uses std::exchange without including <utility>.
#include <boost/asio/ssl/context.hpp>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

namespace ssl = boost::asio::ssl;
using boost::asio::buffer;
using boost::system::error_code;

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  constexpr int64_t kMaxPemBytes = int64_t{1} << 20;
  return ReadTextFile(path, kMaxPemBytes);
}

absl::Status Fits(const error_code& error, const std::string& path, absl::string_view what) {
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what, " (", error.message(), ")"));
}

absl::StatusOr<TlsContext::Texts> Read(const TlsContext::Files& files) {
  TlsContext::Texts texts;
  ATTENDANT_ASSIGN_OR_RETURN(texts.cert, ReadPem(files.cert));
  ATTENDANT_ASSIGN_OR_RETURN(texts.key, ReadPem(files.key));
  if (!files.client_ca.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(texts.client_ca, ReadPem(files.client_ca));
  }
  return texts;
}

// Errors name the files that the texts come from.
absl::StatusOr<std::shared_ptr<ssl::context>> MakeContext(const TlsContext::Files& files,
                                                          const TlsContext::Texts& texts) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  error_code error;
  context->set_options(ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1, error);
  ATTENDANT_RETURN_IF_ERROR(Fits(error, files.cert, "OpenSSL cannot be used"));
  context->use_certificate_chain(buffer(texts.cert), error);
  ATTENDANT_RETURN_IF_ERROR(Fits(error, files.cert, "not a PEM certificate chain"));
  // Without this, OpenSSL asks the terminal.
  const auto encrypted = std::make_shared<bool>(false);
  context->set_password_callback(
      [encrypted](size_t, ssl::context::password_purpose) {
        *encrypted = true;
        return std::string();
      },
      error);
  ATTENDANT_RETURN_IF_ERROR(Fits(error, files.cert, "OpenSSL cannot be used"));
  context->use_private_key(buffer(texts.key), ssl::context::pem, error);
  if (*encrypted) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.key,
                     ": the key is encrypted: write it without its passphrase, as "
                     "`openssl pkey -in ENCRYPTED -out KEY` does"));
  }
  ATTENDANT_RETURN_IF_ERROR(
      Fits(error, files.key,
           absl::StrCat("not a PEM private key that fits the certificate ", files.cert)));
  // OpenSSL resumes no session that a client's certificate opened without a name for this context.
  // Sessions end with the context: each has its own key of tickets.
  constexpr unsigned char kSessions[] = "attendant";
  SSL_CTX_set_session_id_context(context->native_handle(), kSessions, sizeof(kSessions) - 1);
  if (files.client_ca.empty()) return context;
  context->add_certificate_authority(buffer(texts.client_ca), error);
  ATTENDANT_RETURN_IF_ERROR(Fits(error, files.client_ca, "no PEM certificates"));
  context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
  ATTENDANT_RETURN_IF_ERROR(Fits(error, files.client_ca, "OpenSSL cannot be used"));
  return context;
}

}  // namespace

absl::StatusOr<TlsContext::Texts> TlsContext::ReadFitting(const Files& files) {
  ATTENDANT_ASSIGN_OR_RETURN(Texts texts, Read(files));
  ATTENDANT_RETURN_IF_ERROR(MakeContext(files, texts).status());
  return texts;
}

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Load(Files files) {
  std::unique_ptr<TlsContext> context(new TlsContext(std::move(files)));
  ATTENDANT_RETURN_IF_ERROR(context->Reload());
  return context;
}

absl::Status TlsContext::Reload() {
  ATTENDANT_ASSIGN_OR_RETURN(const Texts texts, Read(files_));
  ATTENDANT_ASSIGN_OR_RETURN(std::shared_ptr<ssl::context> context, MakeContext(files_, texts));
  absl::MutexLock lock(&mutex_);
  context_ = std::move(context);
  return absl::OkStatus();
}

std::shared_ptr<ssl::context> TlsContext::current() const {
  absl::MutexLock lock(&mutex_);
  return context_;
}

}  // namespace attendant
