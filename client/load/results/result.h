// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "client/load/driver.h"
#include "client/load/recorder.h"

namespace attendant::client {

// A load in words.
struct LoadDescription {
  std::string protocol;
  std::string server;
  std::string model;
  int64_t model_version = 0;  // 0: the server chose
  std::string payload;
  LoadPlan plan;
};

// The load generator's own use of the machine, from the first request to the last answer.
struct ClientCost {
  double cpu_s = 0;             // of all threads
  double busiest_thread_s = 0;  // of the one that took the most
  double wall_s = 0;
  int processors = 1;  // that it may use
};

struct LoadResult {
  LoadDescription description;
  absl::Time start;  // of the measured window
  LoadSummary summary;
  LoadDetail detail;
  ClientCost cost;
};

// Why the figures say more about the load generator than about the server; empty when they do not:
//   open loop   the 99th percentile of the send lag is above 1 ms, and above a tenth of that of the
//               response time of the answered requests
//   both loops  one of its threads was busy for 90 % of the time, or all of them for 90 % of that
//   of
//               its processors, in a second or more
std::string ClientBottleneck(const LoadResult& result);

// True if the server falls behind an open loop. Over the window, the number of requests without an
// answer has grown by more than two bounds: 3 % of the arrivals, and the chance of random arrivals,
// which is the square root of their number (times that of the burst). Such a backlog grows without
// end; the latencies of a short load do not show it. REQUIRES: a window that the plan's duration
// ends, and a warm-up as long as the server's latency.
bool FallsBehind(const LoadResult& result);

}  // namespace attendant::client
