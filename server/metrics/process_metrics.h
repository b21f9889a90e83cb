// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace attendant {

// The process_* families that every Prometheus client library has, read from the kernel at each
// scrape. What cannot be read (no /proc) is left out. Thread-safe.
class ProcessMetrics : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace attendant
