// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant::cuda {

// The numbers of rows, sequences and attention tasks of a batch, read by kernels on the device. A
// recorded graph launches the largest size of its bucket; blocks beyond the counts do nothing. Rows
// beyond the counts hold finite numbers or are never read.
struct BatchCounts {
  int32_t tokens = 0;
  int32_t sequences = 0;
  int32_t attention_tasks = 0;
  int32_t unused = 0;
};

}  // namespace attendant::cuda
