// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/load/recorder.h"

namespace attendant::client {

// The figures of the batches of a load, by name: `requests_per_s`; `error_rate`, the share of the
// requests that failed or were not sent; and of the response time `mean`, `p50`, `p90` and `p99` in
// seconds. A batch is a stretch of whole intervals; there are 10 to 19 batches of equal length, or
// as many as the window has whole intervals. Neighbouring requests share a queue, so their
// latencies are not independent. Nor are batches near saturation, where a queue lasts longer than a
// batch; statistics.h allows for that. A figure is left out where a batch has too few requests to
// tell it.
using BatchFigures = std::map<std::string, std::vector<double>>;
BatchFigures BatchFiguresOf(const IntervalSeries& series, absl::Duration window);

}  // namespace attendant::client
