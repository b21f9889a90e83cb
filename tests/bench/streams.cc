// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/streams.h"

#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "tests/bench/timing.h"

namespace attendant::bench {
namespace {

// Hands out the numbers of calls and takes the times of their ends. Thread-safe.
class Calls {
 public:
  Calls(size_t streams, size_t items, double seconds)
      : first_(streams), items_(items), whole_(std::lcm(streams, items)), end_(Now() + seconds) {}

  // The item of the next call; none when the time is over and whole passes are handed out.
  std::optional<size_t> Next() {
    const std::lock_guard lock(mutex_);
    if (given_ > first_ && (given_ - first_) % whole_ == 0 && Now() >= end_) return std::nullopt;
    return given_++ % items_;
  }

  void Ended() {
    const std::lock_guard lock(mutex_);
    ended_.push_back(Now());
  }

  // REQUIRES: every call has ended.
  double PassesPerSecond() const {
    const double passes = static_cast<double>(ended_.size() - first_) / static_cast<double>(items_);
    return passes / (ended_.back() - ended_[first_ - 1]);
  }

 private:
  const size_t first_;  // calls before the clock starts
  const size_t items_;
  const size_t whole_;
  const double end_;
  std::mutex mutex_;
  size_t given_ = 0;
  std::vector<double> ended_;
};

}  // namespace

double PassesPerSecond(size_t streams, size_t items, double seconds, const StreamWork& work) {
  Calls calls(streams, items, seconds);
  const auto run = [&](size_t stream) {
    work.begin(stream);
    while (const std::optional<size_t> item = calls.Next()) {
      work.run(stream, *item);
      calls.Ended();
    }
  };
  std::vector<std::thread> others;
  for (size_t stream = 1; stream < streams; ++stream) others.emplace_back(run, stream);
  run(0);
  for (std::thread& other : others) other.join();
  return calls.PassesPerSecond();
}

}  // namespace attendant::bench
