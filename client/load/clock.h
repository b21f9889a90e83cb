// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace attendant::client {

// Time since a load began. Thread-safe.
class LoadClock {
 public:
  virtual ~LoadClock() = default;
  virtual absl::Duration Now() const = 0;
  virtual void SleepUntil(absl::Duration time) = 0;
};

class SteadyClock : public LoadClock {
 public:
  absl::Duration Now() const override {
    return absl::FromChrono(std::chrono::steady_clock::now() - start_);
  }
  void SleepUntil(absl::Duration time) override;

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace attendant::client
