// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant {

// The calls of the process to its allocator, its locks and oneDNN, on all of its threads.
struct CallCounts {
  int64_t allocations = 0;  // malloc and its relatives, and so operator new; but for the next
  int64_t worker_allocations = 0;   // those of them on other threads than the counter's
  int64_t execute_allocations = 0;  // inside dnnl_primitive_execute
  int64_t executions = 0;           // of primitives
  int64_t locks = 0;                // pthread mutexes and read-write locks, free or taken
  int64_t primitives = 0;           // made, whether compiled or found in oneDNN's cache

  friend bool operator==(const CallCounts&, const CallCounts&) = default;
};

// Counts while it lives. A program that links call_counter.cc has those functions replaced for
// everything in the process, shared libraries included: they count, and go on to the real ones. One
// at a time.
class CallCounter {
 public:
  CallCounter();
  ~CallCounter();
  CallCounter(const CallCounter&) = delete;
  CallCounter& operator=(const CallCounter&) = delete;

  CallCounts counts() const;
};

}  // namespace attendant
