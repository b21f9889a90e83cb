// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace attendant::client {

// Looks for the highest rate that keeps an objective: doubles the rate while it is kept, halves it
// while it is not, then takes the geometric mean of the highest rate kept and the lowest missed,
// until they are 5 % apart. Pure: the caller plays each rate and tells how it went.
class RateSearch {
 public:
  static constexpr double kPrecision = 1.05;
  static constexpr double kLowestRate = 0.1, kHighestRate = 1e6;  // requests per second

  // REQUIRES: first_rate > 0.
  explicit RateSearch(double first_rate) : rate_(first_rate) {}

  // The rate to play next. REQUIRES: not done().
  double rate() const { return rate_; }
  bool done() const { return done_; }
  // The highest rate that kept the objective; 0 when none did.
  double best() const { return kept_; }
  // The lowest rate that missed it; 0 when none did.
  double missed() const { return missed_; }

  void Report(bool kept);

 private:
  double rate_;
  double kept_ = 0, missed_ = 0;
  bool done_ = false;
};

}  // namespace attendant::client
