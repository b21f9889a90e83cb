// SPDX-License-Identifier: Apache-2.0
#include "client/load/schedule.h"

#include <utility>

#include "client/load/random.h"

namespace attendant::client {
namespace {

// Poisson arrivals of bursts; a burst of one is a Poisson process of requests.
class BurstSchedule : public Schedule {
 public:
  BurstSchedule(double requests_per_s, int64_t burst, uint64_t seed)
      : bursts_per_s_(requests_per_s / static_cast<double>(burst)), burst_(burst), random_(seed) {}

  std::optional<absl::Duration> Next() override {
    if (given_ == 0) time_ += absl::Seconds(random_.Exponential(bursts_per_s_));
    given_ = (given_ + 1) % burst_;
    return time_;
  }

 private:
  const double bursts_per_s_;
  const int64_t burst_;
  Random random_;
  int64_t given_ = 0;  // of the current burst
  absl::Duration time_ = absl::ZeroDuration();
};

// Multiplies instead of adding, so that rounding does not grow.
class ConstantSchedule : public Schedule {
 public:
  explicit ConstantSchedule(double requests_per_s) : gap_s_(1 / requests_per_s) {}

  std::optional<absl::Duration> Next() override {
    return absl::Seconds(static_cast<double>(++given_) * gap_s_);
  }

 private:
  const double gap_s_;
  int64_t given_ = 0;
};

class TraceSchedule : public Schedule {
 public:
  explicit TraceSchedule(std::shared_ptr<const std::vector<absl::Duration>> times)
      : times_(std::move(times)) {}

  std::optional<absl::Duration> Next() override {
    if (next_ == times_->size()) return std::nullopt;
    return (*times_)[next_++];
  }

 private:
  const std::shared_ptr<const std::vector<absl::Duration>> times_;
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Schedule> MakeSchedule(const Arrivals& arrivals, double requests_per_s,
                                       uint64_t seed) {
  switch (arrivals.kind) {
    case Arrivals::Kind::kPoisson:
      return std::make_unique<BurstSchedule>(requests_per_s, 1, seed);
    case Arrivals::Kind::kConstant:
      return std::make_unique<ConstantSchedule>(requests_per_s);
    case Arrivals::Kind::kBursts:
      return std::make_unique<BurstSchedule>(requests_per_s, arrivals.burst, seed);
    case Arrivals::Kind::kTrace:
      return std::make_unique<TraceSchedule>(arrivals.times);
  }
  return nullptr;
}

}  // namespace attendant::client
