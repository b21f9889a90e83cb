// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/metrics/device_sample.h"

namespace attendant {

// The attendant_device_* families, collected at each scrape; none while no model has a device.
// Thread-safe.
class DeviceMetrics : public prometheus::Collectable {
 public:
  void Add(const std::string& model, DeviceSource source);
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::pair<std::string, DeviceSource>> sources_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
