// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
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

  // A key that may call a group.
  struct Grant {
    std::string name = {};
    Sha256Digest digest = {};  // of the key
    uint64_t generation = 0;   // of the keys that have it, or of some before them
  };
  // The grant of the key that a client sent (empty: it sent none). UNAUTHENTICATED when there is no
  // such key, PERMISSION_DENIED when it does not have the group.
  absl::StatusOr<Grant> Authorize(absl::string_view key, MethodGroup group) const;
  // Checks a key again that has had a grant. Errors as above.
  absl::StatusOr<Grant> Authorize(const Sha256Digest& digest, MethodGroup group) const;

  // The number of the keys that count: grows whenever they change. Costs one atomic read.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  absl::StatusOr<Grant> Authorize(absl::FunctionRef<const ApiKeys::Key*(const ApiKeys&)> find,
                                  MethodGroup group) const;
  explicit KeyStore(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  mutable absl::Mutex mutex_;
  Sha256Digest seen_ ABSL_GUARDED_BY(mutex_){};  // of the text, or of the error, read last
  std::shared_ptr<const ApiKeys> keys_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> generation_ = 0;  // grows after keys_ has changed
};

}  // namespace attendant
