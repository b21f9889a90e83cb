// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace attendant {

// The memory of a model, in bytes.
struct MemoryEstimate {
  int64_t weight_bytes = 0;   // packed, in the format that computes
  int64_t session_bytes = 0;  // scratch memory of all its workers
  int64_t load_bytes = 0;     // more while it loads

  int64_t held() const { return weight_bytes + session_bytes; }
  int64_t peak() const { return held() + load_bytes; }
};

// The memory that this process may still take.
struct AvailableMemory {
  int64_t bytes = 0;
  std::string reason;  // where the figure comes from
};

// The smallest of the system's MemAvailable and of what the process's control groups (v2 or v1)
// leave below their limits, whose page cache counts as free. None where nothing can be read.
std::optional<AvailableMemory> ReadAvailableMemory(
    const std::string& cgroup_root = "/sys/fs/cgroup",
    const std::string& meminfo = "/proc/meminfo");

// Returns memory that was freed to the system: the allocator keeps it otherwise.
void GiveBackFreedMemory();

// The memory of all models together, against a limit and what the machine has. Thread-safe.
class ModelMemory {
 public:
  using Available = std::function<std::optional<AvailableMemory>()>;

  // The memory of one model, given back with this object. Movable. May outlive the ModelMemory.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept;
    ~Share() { Resize(0); }

    int64_t bytes() const { return bytes_; }
    void Resize(int64_t bytes);  // to what the model really holds

   private:
    friend class ModelMemory;
    std::shared_ptr<std::atomic<int64_t>> total_;
    int64_t bytes_ = 0;
  };

  // `max_bytes` 0: no limit but the machine's.
  explicit ModelMemory(
      int64_t max_bytes = 0, Available available = [] { return ReadAvailableMemory(); });

  // RESOURCE_EXHAUSTED, with all figures, when loading the model would exceed the limit or take
  // more than is available. All shares together never exceed the limit, unless models hold more
  // than was estimated.
  absl::StatusOr<Share> Reserve(const MemoryEstimate& estimate);

  int64_t held_bytes() const { return *total_; }

 private:
  const int64_t max_bytes_;
  const Available available_;
  const std::shared_ptr<std::atomic<int64_t>> total_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace attendant
