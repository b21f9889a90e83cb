// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/command.h"
#include "client/load/driver.h"
#include "client/load/recorder.h"

namespace attendant::client {

// A load at one moment.
struct LoadMoment {
  absl::Duration now;         // since the load began
  LoadSummary summary;        // of the window so far
  double requests_per_s = 0;  // answered since the moment before
  int64_t outstanding = 0;
};

// Lines for a terminal: progress, rate and requests in flight, percentiles of both times, and
// errors by code where there are some.
std::vector<std::string> FormatMoment(const LoadPlan& plan, const LoadMoment& moment);

// Draws the lines on io.err, four times a second, over those before. Thread-compatible.
class LiveView {
 public:
  LiveView(const LoadPlan& plan, Io& io, bool enabled) : plan_(plan), io_(io), enabled_(enabled) {}

  void Update(absl::Duration now, const Recorder& recorder, int64_t outstanding);
  // Takes the lines away.
  void Clear();

 private:
  const LoadPlan& plan_;
  Io& io_;
  const bool enabled_;
  absl::Duration next_ = absl::ZeroDuration(), before_ = absl::ZeroDuration();
  int64_t ok_before_ = 0;
  size_t num_lines_ = 0;  // drawn
};

}  // namespace attendant::client
