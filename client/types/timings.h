// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant::client {

// The time that a request spent inside the server, by phase, in microseconds.
struct Timings {
  int64_t tokenize_us = 0;  // reading and tokenizing
  int64_t queue_us = 0;     // from admission until the last sequence entered a batch
  int64_t compute_us = 0;   // in the back end, summed over the batches of its sequences
  int64_t total_us = 0;     // from the request's arrival to its answer
};

}  // namespace attendant::client
