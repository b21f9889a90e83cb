// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace attendant::bench {

// The work of threads that run at the same time; the calling thread is stream 0.
struct StreamWork {
  absl::FunctionRef<void(size_t stream)> begin;             // once, first, on the stream's thread
  absl::FunctionRef<void(size_t stream, size_t item)> run;  // one item
};

// Runs items 0 to `items` - 1 in turn and from 0 again, for about `seconds` and at least one pass;
// a stream that is free takes the next item. Returns passes over all items per second. The clock
// starts when `streams` items are complete, and stops after whole passes that are multiples of
// `streams` items.
// REQUIRES: streams > 0, items > 0.
double PassesPerSecond(size_t streams, size_t items, double seconds, const StreamWork& work);

}  // namespace attendant::bench
