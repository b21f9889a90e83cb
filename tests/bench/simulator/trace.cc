// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/simulator/trace.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <random>

namespace attendant::bench {
namespace {

using Random = std::mt19937_64;

constexpr int64_t kRealLengths[] = {
#include "tests/bench/real_lengths.inc"
};

int64_t DrawLength(Random& random) {
  constexpr double kMedian = 48;
  constexpr double kSigma = 0.54;
  constexpr int64_t kMost = 512;
  const double len = std::lognormal_distribution<double>(std::log(kMedian), kSigma)(random);
  return std::clamp<int64_t>(std::llround(len), 1, kMost);
}

int64_t DrawRealText(Random& random) { return kRealLengths[random() % std::size(kRealLengths)]; }

// `batch` requests at each moment of a Poisson process.
Trace Poisson(int64_t requests, double requests_per_second, int64_t batch, uint64_t seed,
              const std::function<int64_t(Random&)>& length) {
  Random random(seed);
  std::exponential_distribution<double> gap(requests_per_second / static_cast<double>(batch));
  absl::Time now = TraceStart();
  Trace trace;
  for (int64_t i = 0; i < requests; ++i) {
    if (i % batch == 0) now += absl::Seconds(gap(random));
    trace.push_back({.at = now, .lens = {length(random)}});
  }
  return trace;
}

}  // namespace

int64_t Arrival::tokens() const { return std::reduce(lens.begin(), lens.end()); }

absl::Time TraceStart() { return absl::UnixEpoch() + absl::Hours(1); }

Trace MixedTrace(int64_t requests, double requests_per_second, uint64_t seed) {
  return Poisson(requests, requests_per_second, 1, seed, DrawLength);
}

Trace BurstTrace(int64_t requests, double requests_per_second, int64_t burst, uint64_t seed) {
  return Poisson(requests, requests_per_second, burst, seed, DrawLength);
}

Trace RealTextsTrace(int64_t requests, double requests_per_second, uint64_t seed) {
  return Poisson(requests, requests_per_second, 1, seed, DrawRealText);
}

Trace UniformTrace(int64_t requests, double requests_per_second, int64_t len, uint64_t seed) {
  return Poisson(requests, requests_per_second, 1, seed, [len](Random&) { return len; });
}

Arrival Whale(absl::Time at) { return {.at = at, .lens = std::vector<int64_t>(4096, 64)}; }

Trace Merge(const Trace& a, const Trace& b) {
  Trace merged;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(merged),
             [](const Arrival& x, const Arrival& y) { return x.at < y.at; });
  return merged;
}

int64_t Tokens(const Trace& trace) {
  int64_t tokens = 0;
  for (const Arrival& arrival : trace) tokens += arrival.tokens();
  return tokens;
}

}  // namespace attendant::bench
