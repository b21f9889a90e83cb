// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"
#include "server/metrics/server_metrics.h"
#include "tests/server/metrics/exposition.h"

namespace attendant {

// The metrics of a server, and what a scraper reads of them.
class MetricsTest : public testing::Test {
 protected:
  Exposition Scrape() const {
    const std::string text = metrics_.Scrape();
    absl::StatusOr<Exposition> parsed = Exposition::Parse(text);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() ? *parsed : Exposition();
  }

  ServerMetrics metrics_{"1.2.3"};
};

}  // namespace attendant
