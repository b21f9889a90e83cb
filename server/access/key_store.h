// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/access/api_keys.h"

namespace attendant {

// The keys of a file, which may change while the server runs. Thread-safe.
class KeyStore {
 public:
  // INVALID_ARGUMENT and NOT_FOUND name the file, and the line that is wrong.
  static absl::StatusOr<std::unique_ptr<KeyStore>> Open(std::string path);

  // Reads the file again. True: it has changed, and its keys count from now on. An error says what
  // is wrong with a changed file, once: the keys stay as they are.
  absl::StatusOr<bool> Reload();

  // The name of the key that a client sent (empty: it sent none). UNAUTHENTICATED when there is no
  // such key, PERMISSION_DENIED when it does not have the group.
  absl::StatusOr<std::string> Authorize(absl::string_view key, MethodGroup group) const;

 private:
  explicit KeyStore(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  mutable absl::Mutex mutex_;
  Sha256Digest seen_ ABSL_GUARDED_BY(mutex_){};  // of the text, or of the error, read last
  std::shared_ptr<const ApiKeys> keys_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
