// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/timing.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace attendant::bench {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void Die(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

double SecondsPerCall(double seconds, absl::FunctionRef<void()> work) {
  const double begin = Now();
  int calls = 0;
  do {
    work();
    ++calls;
  } while (Now() - begin < seconds);
  return (Now() - begin) / calls;
}

std::vector<double> SecondsOfCalls(double seconds, absl::FunctionRef<void()> work) {
  std::vector<double> times;
  const double end = Now() + seconds;
  double begin = Now();
  do {
    work();
    const double now = Now();
    times.push_back(now - begin);
    begin = now;
  } while (begin < end);
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace attendant::bench
