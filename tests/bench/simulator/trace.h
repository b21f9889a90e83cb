// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace attendant::bench {

// A request, as it arrives.
struct Arrival {
  absl::Time at{};
  std::vector<int64_t> lens;  // of its sequences
  int priority = 0;
  uint64_t client = 0;

  int64_t tokens() const;
};

// Arrivals in their order. The same seed gives the same requests; a rate only moves their times.
using Trace = std::vector<Arrival>;

// The moment at which every trace begins.
absl::Time TraceStart();

// Requests of one sequence each, log-normal lengths: median 48, mean 56, at most 512. Poisson.
Trace MixedTrace(int64_t requests, double requests_per_second, uint64_t seed);

// The same requests, `burst` of them at once.
Trace BurstTrace(int64_t requests, double requests_per_second, int64_t burst, uint64_t seed);

// Requests of one sequence each, with lengths drawn from those of the real texts: median 29, mean
// 63.5; 4 % are above 256 tokens and hold 28 % of all tokens. Poisson.
Trace RealTextsTrace(int64_t requests, double requests_per_second, uint64_t seed);

// Requests of one sequence of `len` tokens. Poisson.
Trace UniformTrace(int64_t requests, double requests_per_second, int64_t len, uint64_t seed);

// One request of 4,096 sequences of 64 tokens.
Arrival Whale(absl::Time at);

// The arrivals of both traces, in the order of their times.
Trace Merge(const Trace& a, const Trace& b);

int64_t Tokens(const Trace& trace);

}  // namespace attendant::bench
