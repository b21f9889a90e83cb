// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/load/random.h"

namespace attendant::client {

// The lengths of the sequences of a load, in tokens.
class LengthDistribution {
 public:
  // "fixed:128", "uniform:16:256" (low:high), "lognormal:48:0.54:4:512" (median:sigma:low:high, cut
  // off at both ends), "mixed", which stands for lognormal:48:0.54:4:512, or "file:PATH": any of
  // the lengths in a text file, whose numbers are separated by blanks or line breaks.
  // FAILED_PRECONDITION for everything else.
  static absl::StatusOr<LengthDistribution> Parse(absl::string_view spec);

  // A random length in tokens, in [low(), high()].
  int64_t Sample(Random& random) const;

  int64_t low() const { return low_; }
  int64_t high() const { return high_; }

  // Makes no sequence longer than `limit`. REQUIRES: limit >= 1.
  void Limit(int64_t limit);

 private:
  int64_t low_ = 1;
  int64_t high_ = 1;
  double median_ = 0;  // 0: uniform
  double sigma_ = 0;
  std::vector<int64_t> recorded_;  // not empty: one of these
};

}  // namespace attendant::client
