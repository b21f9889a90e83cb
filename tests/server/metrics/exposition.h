// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant {

using LabelMap = std::map<std::string, std::string>;

struct Sample {
  std::string name;
  LabelMap labels;
  double value = 0;
};

struct Family {
  std::string help;
  std::string type;
  std::vector<Sample> samples;
};

// A scrape, by family name.
class Exposition {
 public:
  // Strict about format 0.0.4: HELP, TYPE and samples of a family stand together, once, in this
  // order; names, labels and values are well-formed; no time series twice; counters and gauges
  // carry their own name, counters end in _total and are not negative; histogram buckets rise to
  // +Inf in bound and count, and _count equals the last.
  static absl::StatusOr<Exposition> Parse(const std::string& text);

  const std::map<std::string, Family>& families() const { return families_; }

  // The value of one series, by its exact name and labels. Fails the test and is NaN when there is
  // none.
  double Value(const std::string& name, const LabelMap& labels) const;

 private:
  std::map<std::string, Family> families_;
};

}  // namespace attendant
