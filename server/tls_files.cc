// SPDX-License-Identifier: Apache-2.0
#include "server/tls_files.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

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
absl::StatusOr<std::string> ReadPem(const std::string& path) {
  constexpr int64_t kMaxPemBytes = int64_t{1} << 20;
  return ReadTextFile(path, kMaxPemBytes);
}

// Of texts that were read from these paths and lie in `pair` and `client_ca` now.
absl::Status CheckFit(const TlsFiles::Paths& paths, const MemoryFile& pair,
                      const MemoryFile& client_ca) {
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_server_method()),
                                                             SSL_CTX_free);
  if (context == nullptr) return absl::InternalError("OpenSSL cannot be used");
  if (SSL_CTX_use_certificate_chain_file(context.get(), pair.path().c_str()) != 1) {
    return Unfit(paths.cert, "not a PEM certificate chain");
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), pair.path().c_str(), SSL_FILETYPE_PEM) != 1) {
    return Unfit(paths.key,
                 absl::StrCat("not a PEM private key that fits the certificate ", paths.cert));
  }
  if (paths.client_ca.empty()) return absl::OkStatus();
  if (SSL_CTX_load_verify_locations(context.get(), client_ca.path().c_str(), nullptr) != 1) {
    return Unfit(paths.client_ca, "no PEM certificates");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MemoryFile> MemoryFile::Create() {
  const int descriptor = memfd_create("attendant-tls", MFD_CLOEXEC);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, "cannot make a file in memory");
  return MemoryFile(descriptor);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status MemoryFile::Replace(const std::string& text) {
  ATTENDANT_ASSIGN_OR_RETURN(const MemoryFile next, Create());
  for (size_t written = 0; written < text.size();) {
    const ssize_t count = write(next.descriptor_, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::ErrnoToStatus(errno, "cannot write a file in memory");
    written += static_cast<size_t>(count);
  }
  while (dup3(next.descriptor_, descriptor_, O_CLOEXEC) < 0) {
    if (errno != EINTR && errno != EBUSY) {
      return absl::ErrnoToStatus(errno, "cannot replace a file in memory");
    }
  }
  return absl::OkStatus();
}

std::string MemoryFile::path() const { return absl::StrCat("/proc/self/fd/", descriptor_); }

absl::StatusOr<std::unique_ptr<TlsFiles>> TlsFiles::Load(Paths paths) {
  ATTENDANT_ASSIGN_OR_RETURN(MemoryFile pair, MemoryFile::Create());
  ATTENDANT_ASSIGN_OR_RETURN(MemoryFile client_ca, MemoryFile::Create());
  std::unique_ptr<TlsFiles> files(
      new TlsFiles(std::move(paths), std::move(pair), std::move(client_ca)));
  ATTENDANT_RETURN_IF_ERROR(files->Reload());
  return files;
}

absl::Status TlsFiles::Reload() {
  absl::MutexLock lock(&mutex_);
  ATTENDANT_ASSIGN_OR_RETURN(const std::string cert, ReadPem(paths_.cert));
  ATTENDANT_ASSIGN_OR_RETURN(const std::string key, ReadPem(paths_.key));
  std::string authorities;
  if (!paths_.client_ca.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(authorities, ReadPem(paths_.client_ca));
  }
  const std::string both = absl::StrCat(cert, "\n", key);
  ATTENDANT_ASSIGN_OR_RETURN(MemoryFile pair, MemoryFile::Create());
  ATTENDANT_ASSIGN_OR_RETURN(MemoryFile client_ca, MemoryFile::Create());
  ATTENDANT_RETURN_IF_ERROR(pair.Replace(both));
  ATTENDANT_RETURN_IF_ERROR(client_ca.Replace(authorities));
  ATTENDANT_RETURN_IF_ERROR(CheckFit(paths_, pair, client_ca));
  ATTENDANT_RETURN_IF_ERROR(client_ca_.Replace(authorities));
  return pair_.Replace(both);
}

}  // namespace attendant
