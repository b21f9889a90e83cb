// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace attendant {

// Some bytes of a registered region, which stays open for as long as they are used. Copied with
// pread and pwrite and never mapped: a client that shortens its memory gets an error, where reading
// a mapping would end the process with SIGBUS. Thread-safe.
class SharedRange {
 public:
  int64_t bytes() const { return bytes_; }

  // INVALID_ARGUMENT when the memory does not reach so far any more. REQUIRES of Write: at most
  // bytes().
  absl::StatusOr<std::string> Read() const;
  absl::Status Write(absl::string_view data) const;

 private:
  friend class SharedMemoryRegions;
  std::shared_ptr<const int> descriptor_;
  int64_t offset_ = 0;  // in the shared memory object
  int64_t bytes_ = 0;
};

// POSIX shared memory that clients on this machine have registered, by the names that they chose.
// Thread-safe.
class SharedMemoryRegions {
 public:
  struct Region {
    std::string key;  // of shm_open
    int64_t offset = 0;
    int64_t bytes = 0;
  };

  // INVALID_ARGUMENT for a name or key that cannot be one, or bytes that the memory does not have;
  // ALREADY_EXISTS; NOT_FOUND: there is no such shared memory; RESOURCE_EXHAUSTED: too many.
  absl::Status Register(const std::string& name, const std::string& key, uint64_t offset,
                        uint64_t bytes);
  void Unregister(const std::string& name);  // empty: all
  // All regions for an empty name; NOT_FOUND for a name without a region.
  absl::StatusOr<std::map<std::string, Region>> List(const std::string& name) const;

  // NOT_FOUND: no such region. INVALID_ARGUMENT: it has not so many bytes from `offset` on.
  absl::StatusOr<SharedRange> Find(const std::string& name, int64_t offset, int64_t bytes) const;

 private:
  struct Open {
    Region region;
    std::shared_ptr<const int> descriptor;
  };
  mutable absl::Mutex mutex_;
  std::map<std::string, Open> regions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
