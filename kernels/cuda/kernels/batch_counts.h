// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant::cuda {

// How many rows, sequences and attention tasks there are, read by kernels on the device: a recorded
// graph has launches of its bucket's largest size, and what is beyond the counts does nothing. Rows
// beyond the counts hold finite numbers or are never read.
struct BatchCounts {
  int32_t tokens = 0;
  int32_t sequences = 0;
  int32_t attention_tasks = 0;
  int32_t unused = 0;
};

}  // namespace attendant::cuda
