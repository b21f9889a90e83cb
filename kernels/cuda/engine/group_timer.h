// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/runtime/handles.h"

namespace attendant::cuda {

// Times the groups of work (ATTENDANT_CUDA_GROUP_*) of a run whose launches lie in one stream.
class GroupTimer {
 public:
  // Room for so many marks a run; further ones are not timed.
  Status Start(int64_t max_marks);

  // A run begins.
  Status Begin(cudaStream_t stream);
  // The work in the stream since the last mark belongs to `group`.
  Status Mark(int group, cudaStream_t stream);
  // Adds the run's seconds to `group_seconds` [ATTENDANT_CUDA_NUM_GROUPS].
  // REQUIRES: the stream has reached the last mark.
  Status AddTo(double* group_seconds) const;

 private:
  std::vector<Event> events_;  // [max_marks + 1]
  std::vector<int> groups_;    // of the marks so far
};

}  // namespace attendant::cuda
