// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kernels/core/backend.h"

namespace attendant {

// Stops threads at a place that a test chooses. Open at first. Thread-safe.
class Gate {
 public:
  void Close();
  void Open();
  // So many pass although it is closed.
  void Let(int count);
  // Passes when the gate is open.
  void Pass();
  // Until `count` threads stand before the closed gate.
  void AwaitWaiting(int count);

  // From now on, what is behind it is a device that is lost.
  void Lose();
  bool lost();

 private:
  absl::Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  int let_ ABSL_GUARDED_BY(mutex_) = 0;  // may still pass
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The reference back end, whose sessions pass `gate` before each batch. The gate must outlive it.
std::unique_ptr<Backend> MakeGatedBackend(Gate& gate);

}  // namespace attendant
