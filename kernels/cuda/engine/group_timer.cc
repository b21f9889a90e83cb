// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/group_timer.h"

namespace attendant::cuda {

Status GroupTimer::Start(int64_t max_marks) {
  events_.resize(static_cast<size_t>(max_marks + 1));
  groups_.reserve(static_cast<size_t>(max_marks));
  for (Event& event : events_) ATTENDANT_CUDA_TRY(MakeEvent(EventUse::kTiming, event));
  return {};
}

Status GroupTimer::Begin(cudaStream_t stream) {
  groups_.clear();
  return Check(cudaEventRecord(events_[0].get(), stream), "timing a run");
}

Status GroupTimer::Mark(int group, cudaStream_t stream) {
  if (groups_.size() + 1 == events_.size()) return {};
  groups_.push_back(group);
  return Check(cudaEventRecord(events_[groups_.size()].get(), stream), "timing a run");
}

Status GroupTimer::AddTo(double* group_seconds) const {
  for (size_t i = 0; i < groups_.size(); ++i) {
    float milliseconds = 0;
    ATTENDANT_CUDA_TRY(
        Check(cudaEventElapsedTime(&milliseconds, events_[i].get(), events_[i + 1].get()),
              "timing a run"));
    group_seconds[groups_[i]] += 1e-3 * static_cast<double>(milliseconds);
  }
  return {};
}

}  // namespace attendant::cuda
