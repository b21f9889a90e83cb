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

bool ReadNumber(const std::string& text, int64_t& number) {
  return absl::SimpleAtoi(text, &number);
}
bool ReadNumber(const std::string& text, double& number) {
  return absl::SimpleAtod(text, &number) && std::isfinite(number);
}

// The parts after the first as numbers; false unless there is one part for each number.
template <typename... Numbers>
bool ReadNumbers(const std::vector<std::string>& parts, Numbers&... numbers) {
  size_t i = 1;
  return parts.size() == 1 + sizeof...(numbers) && (ReadNumber(parts[i++], numbers) && ...);
}

}  // namespace

absl::StatusOr<LengthDistribution> LengthDistribution::Parse(absl::string_view spec) {
  if (spec == "mixed") spec = kMixed;
  const std::vector<std::string> parts = absl::StrSplit(spec, ':');
  LengthDistribution lengths;
  bool good = false;
  if (parts[0] == "fixed") {
    good = ReadNumbers(parts, lengths.low_);
    lengths.high_ = lengths.low_;
  } else if (parts[0] == "uniform") {
    good = ReadNumbers(parts, lengths.low_, lengths.high_);
  } else if (parts[0] == "lognormal") {
    good = ReadNumbers(parts, lengths.median_, lengths.sigma_, lengths.low_, lengths.high_) &&
           lengths.median_ >= 1 && lengths.sigma_ >= 0;
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
