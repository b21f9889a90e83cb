// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "client/load/results/result.h"

namespace attendant::client {

// Measures what this process takes of the machine from the construction on.
class CostMeter {
 public:
  CostMeter();

  // After `wall`. A thread that has ended meanwhile cannot be the busiest one.
  ClientCost Cost(absl::Duration wall) const;

 private:
  const double cpu_before_s_;
  const std::map<std::string, double> threads_before_s_;  // by thread id
};

}  // namespace attendant::client
