// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant {

// Keeps lines that clients can cause from filling a log: at most `lines` in each `window`.
// Thread-safe.
class LineLimit {
 public:
  LineLimit(int64_t lines, absl::Duration window) : lines_(lines), window_(window) {}

  // nullopt: leave this line out. Else write it; the number is of the lines that were left out
  // since the last one written. REQUIRES: `now` is a steady time.
  std::optional<int64_t> Admit(absl::Time now);

 private:
  const int64_t lines_;
  const absl::Duration window_;
  absl::Mutex mutex_;
  absl::Time end_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // of the window
  int64_t written_ ABSL_GUARDED_BY(mutex_) = 0;                    // in the window
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attendant
