// SPDX-License-Identifier: Apache-2.0
#pragma once

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define ATTENDANT_CUDA_NVTX 1
#endif

namespace attendant::cuda {

// A named stretch of the calling thread's time, for profilers; costs a few nanoseconds when none
// listens.
class ProfilerRange {
 public:
#ifdef ATTENDANT_CUDA_NVTX
  explicit ProfilerRange(const char* name) { nvtxRangePushA(name); }
  ~ProfilerRange() { nvtxRangePop(); }
#else
  explicit ProfilerRange(const char*) {}
  ~ProfilerRange() {}
#endif
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace attendant::cuda
