// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
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
  // `source` is called until it gives no device.
  void Add(const std::string& model, DeviceSource source);
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  struct Source {
    std::string model;
    DeviceSource devices;
  };
  void Forget(int64_t number) const;

  mutable absl::Mutex mutex_;
  mutable std::map<int64_t, Source> sources_ ABSL_GUARDED_BY(mutex_);  // by number
  int64_t last_source_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attendant
