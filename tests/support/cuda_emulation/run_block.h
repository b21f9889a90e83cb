// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/cuda/runtime/number_types.h"
#include "tests/support/cuda_emulation/grid.h"

// Helpers for tests of emulated instructions: a kernel run in one block, and conversion to 16-bit
// formats.
namespace attendant::cuda_emulation {

// Runs `kernel` in one block of `threads` threads; returns its faults, empty if there are none.
inline std::vector<std::string> RunBlock(unsigned threads, size_t shared_bytes,
                                         const std::function<void()>& kernel,
                                         KernelOptions options = {}) {
  options.collect_faults = true;
  SetKernelOptions(options);
  RunGrid({}, {threads, 1, 1}, shared_bytes, kernel);
  SetKernelOptions({});
  return TakeFaults();
}

template <typename T>
T Convert(float value) {
  if constexpr (std::is_same_v<T, cuda::Bf16>)
    return cuda::ToBf16(value);
  else
    return cuda::ToF16(value);
}

}  // namespace attendant::cuda_emulation
