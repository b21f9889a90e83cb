// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "client/load/driver.h"
#include "client/load/recorder.h"

namespace attendant::client {

// A load in words.
struct LoadDescription {
  std::string protocol;
  std::string server;
  std::string model;
  std::string payload;
  LoadPlan plan;
};

// A table for people. Ends in a line break.
std::string FormatReport(const LoadDescription& description, const LoadSummary& summary);

// Times are in seconds. A number that the protocol does not tell is null.
nlohmann::ordered_json ReportToJson(const LoadDescription& description, const LoadSummary& summary);

// "[=====>    ]  45 %  1,234 requests/s  p99 12.3 ms  5 failed", for one line of a terminal.
std::string FormatProgress(const LoadPlan& plan, const LoadSummary& summary, absl::Duration now);

// Three significant digits and a suitable unit: "850 us", "12.3 ms", "1.50 s".
std::string ShortDuration(absl::Duration duration);

}  // namespace attendant::client
