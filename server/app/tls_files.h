// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/http/connection/tls_context.h"
#include "server/net/listening_socket.h"

namespace attendant {

// A file in memory that this process reads by a path. Thread-compatible.
class MemoryFile {
 public:
  static absl::StatusOr<MemoryFile> Create();

  // A reader that opened the path before has the old text, one that opens it after has the new.
  absl::Status Replace(const std::string& text);
  std::string path() const;  // the same for its life
  // An error where no reader can open the path: /proc is not mounted.
  absl::Status CheckPath() const;

 private:
  explicit MemoryFile(int descriptor) : descriptor_(descriptor) {}

  FileDescriptor descriptor_;
};

// Copies of the TLS files for gRPC to read, replaced once the files have been found to fit. gRPC
// takes any text, and where a certificate is empty, as a file is for a moment while it is written
// in place, it ends the process. Thread-safe.
class TlsFiles {
 public:
  // The errors are those of TlsContext::ReadFitting and MemoryFile::CheckPath.
  static absl::StatusOr<std::unique_ptr<TlsFiles>> Load(TlsContext::Files files);

  // Reads the files again. The copies stay as they are where it fails.
  absl::Status Reload();

  // The paths of the copies. Certificate chain and key are in one file, so that they are replaced
  // together.
  std::string pair_path() const { return pair_.path(); }
  std::string client_ca_path() const { return files_.client_ca.empty() ? "" : client_ca_.path(); }

 private:
  TlsFiles(TlsContext::Files files, MemoryFile pair, MemoryFile client_ca)
      : files_(std::move(files)), pair_(std::move(pair)), client_ca_(std::move(client_ca)) {}

  const TlsContext::Files files_;
  absl::Mutex mutex_;  // one reload at a time
  MemoryFile pair_;
  MemoryFile client_ca_;
};

}  // namespace attendant
