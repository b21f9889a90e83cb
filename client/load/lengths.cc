// SPDX-License-Identifier: Apache-2.0
#include "client/load/lengths.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace attendant::client {
namespace {

constexpr absl::string_view kMixed = "lognormal:48:0.54:4:512";
constexpr int64_t kMaxLength = 1 << 20;

}  // namespace

absl::StatusOr<LengthDistribution> LengthDistribution::Parse(absl::string_view spec) {
  if (spec == "mixed") spec = kMixed;
  const std::vector<std::string> parts = absl::StrSplit(spec, ':');
  LengthDistribution lengths;
  bool good = false;
  if (parts[0] == "fixed" && parts.size() == 2) {
    good = absl::SimpleAtoi(parts[1], &lengths.low_);
    lengths.high_ = lengths.low_;
  } else if (parts[0] == "uniform" && parts.size() == 3) {
    good = absl::SimpleAtoi(parts[1], &lengths.low_) && absl::SimpleAtoi(parts[2], &lengths.high_);
  } else if (parts[0] == "lognormal" && parts.size() == 5) {
    good = absl::SimpleAtod(parts[1], &lengths.median_) &&
           absl::SimpleAtod(parts[2], &lengths.sigma_) &&
           absl::SimpleAtoi(parts[3], &lengths.low_) &&
           absl::SimpleAtoi(parts[4], &lengths.high_) && lengths.median_ >= 1 &&
           lengths.sigma_ >= 0 && std::isfinite(lengths.median_) && std::isfinite(lengths.sigma_);
  }
  if (!good) {
    return absl::FailedPreconditionError(
        absl::StrCat("--lengths: cannot read '", spec,
                     "'; write mixed, fixed:N, uniform:LOW:HIGH or "
                     "lognormal:MEDIAN:SIGMA:LOW:HIGH"));
  }
  if (lengths.low_ < 1 || lengths.high_ < lengths.low_ || lengths.high_ > kMaxLength) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--lengths: ", lengths.low_, " to ", lengths.high_, " is not within 1 to ", kMaxLength));
  }
  return lengths;
}

int64_t LengthDistribution::Sample(Random& random) const {
  if (median_ == 0) return random.Integer(low_, high_);
  const double length = median_ * std::exp(sigma_ * random.Normal());
  return static_cast<int64_t>(
      std::clamp(std::round(length), static_cast<double>(low_), static_cast<double>(high_)));
}

void LengthDistribution::Limit(int64_t limit) {
  high_ = std::min(high_, limit);
  low_ = std::min(low_, high_);
}

}  // namespace attendant::client
