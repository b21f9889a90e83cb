// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace boost::asio::ssl {
class context;
}

namespace attendant {

// The certificates that the HTTP port shows, and asks for. TLS 1.2 and newer. Thread-safe.
class TlsContext {
 public:
  // PEM files: a certificate chain, its key, and authorities of which one must have signed each
  // client's certificate (empty: clients need none).
  struct Files {
    std::string cert;
    std::string key;
    std::string client_ca;
  };

  // The contents of the files, read at one time.
  struct Texts {
    std::string cert;
    std::string key;
    std::string client_ca;
  };

  // The error names the file at fault: INVALID_ARGUMENT where the texts do not fit together.
  static absl::StatusOr<Texts> ReadFitting(const Files& files);
  static absl::StatusOr<std::unique_ptr<TlsContext>> Load(Files files);

  // Reads the files again, for connections that come after. With an error the former stay.
  absl::Status Reload();

  std::shared_ptr<boost::asio::ssl::context> current() const;

 private:
  explicit TlsContext(Files files) : files_(std::move(files)) {}

  const Files files_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<boost::asio::ssl::context> context_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
