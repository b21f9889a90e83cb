// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "client/load/results/result.h"

namespace attendant::client {

// A load as `attendant load --json` writes it, `attendant compare` reads it, and the page shows it.
// Times are in seconds. A number that the protocol does not tell is null.
//   interrupted                 whether the load was ended early, by Ctrl-C or SIGTERM
//   resent                      times that a request was sent again over HTTP
//   latency_s, service_s        response time and service time: mean, percentiles, max
//   intervals                   the course of the load, each of interval_s seconds
//   batches, confidence_95      figures of batches.h, and their means with half the width of their
//                               95 % confidence intervals
//   distribution                [percent, seconds] of both times
//   bins                        [low, high, requests] of both times
nlohmann::ordered_json ReportToJson(const LoadResult& result);

}  // namespace attendant::client
