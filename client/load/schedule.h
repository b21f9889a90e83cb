// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace attendant::client {

// When the requests of an open loop are sent.
struct Arrivals {
  enum class Kind {
    kPoisson,   // at random times, independent of each other
    kConstant,  // evenly
    kBursts,    // `burst` at once, the bursts at random times; the mean rate is kept
    kTrace,     // at recorded times
  };
  Kind kind = Kind::kPoisson;
  int64_t burst = 1;
  // kTrace: ascending, from the begin of the load.
  std::shared_ptr<const std::vector<absl::Duration>> times = nullptr;
};

// The intended times of requests, ascending. Thread-compatible.
class Schedule {
 public:
  virtual ~Schedule() = default;
  // nullopt when there are no more; only a trace ends.
  virtual std::optional<absl::Duration> Next() = 0;
};

// The same arguments give the same times. REQUIRES: requests_per_s > 0, burst >= 1; a trace has
// times.
std::unique_ptr<Schedule> MakeSchedule(const Arrivals& arrivals, double requests_per_s,
                                       uint64_t seed);

}  // namespace attendant::client
