// SPDX-License-Identifier: Apache-2.0
#include "client/load/lengths.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr absl::string_view kMixed = "lognormal:48:0.54:4:512";
constexpr int64_t kMaxLength = 1 << 20;
constexpr size_t kMaxLengths = 10'000'000;  // of a file
constexpr size_t kShownWordBytes = 40;      // of a word that is no number

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

absl::StatusOr<std::vector<int64_t>> ReadLengths(const std::string& path) {
  std::ifstream file(path);
  std::vector<int64_t> lengths;
  for (std::string word; file >> word;) {
    int64_t length = 0;
    if (!absl::SimpleAtoi(word, &length) || lengths.size() == kMaxLengths) {
      word.resize(std::min(word.size(), kShownWordBytes));
      return absl::FailedPreconditionError(absl::StrCat("--lengths: ", path, " holds '", word,
                                                        "'; it must hold at most ", kMaxLengths,
                                                        " numbers"));
    }
    lengths.push_back(length);
  }
  const bool is_read = file.is_open() && !file.bad();  // a folder opens, and cannot be read
  if (is_read && !lengths.empty()) return lengths;
  return absl::FailedPreconditionError(
      absl::StrCat("--lengths: the file ", path, is_read ? " has no lengths" : " cannot be read"));
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
  } else if (absl::StartsWith(spec, "file:")) {
    ATTENDANT_ASSIGN_OR_RETURN(lengths.recorded_, ReadLengths(std::string(spec.substr(5))));
    const auto [low, high] =
        std::minmax_element(lengths.recorded_.begin(), lengths.recorded_.end());
    lengths.low_ = *low;
    lengths.high_ = *high;
    good = true;
  } else if (parts[0] == "lognormal") {
    good = ReadNumbers(parts, lengths.median_, lengths.sigma_, lengths.low_, lengths.high_) &&
           lengths.median_ >= 1 && lengths.sigma_ >= 0;
  }
  if (!good) {
    return absl::FailedPreconditionError(
        absl::StrCat("--lengths: cannot read '", spec,
                     "'; write mixed, fixed:N, uniform:LOW:HIGH, "
                     "lognormal:MEDIAN:SIGMA:LOW:HIGH or file:PATH"));
  }
  if (lengths.low_ < 1 || lengths.high_ < lengths.low_ || lengths.high_ > kMaxLength) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--lengths: ", lengths.low_, " to ", lengths.high_, " is not within 1 to ", kMaxLength));
  }
  return lengths;
}

int64_t LengthDistribution::Sample(Random& random) const {
  if (!recorded_.empty()) {
    const int64_t index = random.Integer(0, static_cast<int64_t>(recorded_.size()) - 1);
    return std::min(recorded_[static_cast<size_t>(index)], high_);
  }
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
