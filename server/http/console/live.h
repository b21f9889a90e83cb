// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "server/metrics/server_metrics.h"

namespace attendant {

// The counters of all models as one JSON object, with the bounds of their histograms. A client asks
// for it again and again, and draws the differences.
std::string LiveJson(const ServerMetrics& metrics, absl::string_view version);

// The JSON Schema of LiveJson.
std::string LiveSchema();

}  // namespace attendant
