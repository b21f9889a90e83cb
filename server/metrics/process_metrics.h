// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace attendant {

// The process_* families of every Prometheus client library, read from the kernel at each scrape.
// Values that cannot be read (no /proc) are left out. Thread-safe.
class ProcessMetrics : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace attendant
