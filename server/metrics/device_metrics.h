// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace attendant {

// A device with memory of its own, as a GPU, and what it has done for one model.
struct DeviceSample {
  int device = 0;
  std::string name;
  int64_t memory_used_bytes = 0;  // by every process
  int64_t memory_total_bytes = 0;
  double busy_seconds = 0;
  std::vector<std::pair<absl::string_view, double>> group_seconds;  // by group of kernels
};

// Must not block for long; may be called by several threads at once.
using DeviceSource = std::function<std::vector<DeviceSample>()>;

// The attendant_device_* families, asked for at each scrape; none while no model has a device.
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
