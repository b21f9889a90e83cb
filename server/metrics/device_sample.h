// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant {

// A device with memory of its own, as a GPU, and the work it has done for one model.
struct DeviceSample {
  int device = 0;
  std::string name;
  int64_t memory_used_bytes = 0;  // by every process
  int64_t memory_total_bytes = 0;
  double busy_seconds = 0;
  std::vector<std::pair<absl::string_view, double>> group_seconds;  // by group of kernels
};

// Must not block for long; several threads may call it at once.
using DeviceSource = std::function<std::vector<DeviceSample>()>;

}  // namespace attendant
