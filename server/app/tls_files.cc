// SPDX-License-Identifier: Apache-2.0
#include "server/app/tls_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"

namespace attendant {
absl::StatusOr<MemoryFile> MemoryFile::Create() {
  const int descriptor = memfd_create("attendant-tls", MFD_CLOEXEC);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, "cannot make a file in memory");
  return MemoryFile(descriptor);
}

absl::Status MemoryFile::Replace(const std::string& text) {
  ATTENDANT_ASSIGN_OR_RETURN(const MemoryFile next, Create());
  for (size_t written = 0; written < text.size();) {
    const ssize_t count =
        write(next.descriptor_.get(), text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::ErrnoToStatus(errno, "cannot write a file in memory");
    written += static_cast<size_t>(count);
  }
  while (dup3(next.descriptor_.get(), descriptor_.get(), O_CLOEXEC) < 0) {
    if (errno != EINTR && errno != EBUSY) {
      return absl::ErrnoToStatus(errno, "cannot replace a file in memory");
    }
  }
  return absl::OkStatus();
}

std::string MemoryFile::path() const { return absl::StrCat("/proc/self/fd/", descriptor_.get()); }

absl::Status MemoryFile::CheckPath() const {
  const FileDescriptor opened(open(path().c_str(), O_RDONLY | O_CLOEXEC));
  if (opened.valid()) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot open a file in memory as ", path()));
}

absl::StatusOr<std::unique_ptr<TlsFiles>> TlsFiles::Load(TlsContext::Files files) {
  ATTENDANT_ASSIGN_OR_RETURN(MemoryFile pair, MemoryFile::Create());
  ATTENDANT_RETURN_IF_ERROR(pair.CheckPath());
  ATTENDANT_ASSIGN_OR_RETURN(MemoryFile client_ca, MemoryFile::Create());
  std::unique_ptr<TlsFiles> copies(
      new TlsFiles(std::move(files), std::move(pair), std::move(client_ca)));
  ATTENDANT_RETURN_IF_ERROR(copies->Reload());
  return copies;
}

absl::Status TlsFiles::Reload() {
  absl::MutexLock lock(&mutex_);
  ATTENDANT_ASSIGN_OR_RETURN(const TlsContext::Texts texts, TlsContext::ReadFitting(files_));
  ATTENDANT_RETURN_IF_ERROR(client_ca_.Replace(texts.client_ca));
  return pair_.Replace(absl::StrCat(texts.cert, "\n", texts.key));
}

}  // namespace attendant
