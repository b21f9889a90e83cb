// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace attendant::cuda {

// Chooses the runs whose groups of work are timed. They are launched kernel by kernel, which takes
// several times as long where other runs replay a graph: so few are chosen that neither the 99th
// percentile of few runs shows them nor the 99.9th of many.
class ProfileSampler {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t kRuns = 128;
  static constexpr std::chrono::seconds kPause{10};

  // True if the run that begins now is timed: kRuns runs and kPause after the last timed one.
  bool Takes(Clock::time_point now) {
    if (++runs_ < kRuns || now < next_) return false;
    runs_ = 0;
    next_ = now + kPause;
    return true;
  }

 private:
  int64_t runs_ = 0;  // since the last one
  Clock::time_point next_ = Clock::time_point::min();
};

}  // namespace attendant::cuda
