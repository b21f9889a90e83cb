// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"

namespace attendant {

// The streams of one service, so that they can be closed before the server stops. Thread-safe.
template <typename Stream>
class OpenStreams {
 public:
  void Add(Stream* stream) {
    absl::MutexLock lock(&mutex_);
    if (closing_) {
      stream->Close();
    } else {
      streams_.insert(stream);
    }
  }
  void Remove(Stream* stream) {
    absl::MutexLock lock(&mutex_);
    streams_.erase(stream);
  }
  // Closes every stream, and new ones at once.
  void CloseAll() {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    for (Stream* stream : streams_) stream->Close();
  }

 private:
  absl::Mutex mutex_;  // taken before a stream's own
  absl::flat_hash_set<Stream*> streams_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant
