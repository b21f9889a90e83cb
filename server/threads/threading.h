// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant {

// The source of a batcher's threads and clock: the system, or a simulation that runs the threads
// one at a time by its own clock. Thread-safe.
class Threading {
 public:
  // A condition variable whose timed waits follow Now. Thread-safe.
  class Condition {
   public:
    virtual ~Condition() = default;
    virtual void Signal() = 0;
    virtual void SignalAll() = 0;
    // Waits for a signal, at most until `deadline`. May return early. REQUIRES: the caller holds
    // `mutex`, which is free while it waits.
    virtual void WaitUntil(absl::Mutex& mutex, absl::Time deadline)
        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
  };

  // A thread that runs. The destructor waits for its end.
  class Thread {
   public:
    virtual ~Thread() = default;
  };

  virtual ~Threading() = default;

  virtual absl::Time Now() = 0;  // a steady time, see steady_time.h
  virtual std::unique_ptr<Condition> MakeCondition() = 0;
  // `name` is cut to 15 bytes.
  virtual std::unique_ptr<Thread> Start(const std::string& name,
                                        absl::AnyInvocable<void()> body) = 0;

  // The system's, which lasts as long as the process.
  static Threading& System();
};

}  // namespace attendant
