// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "client/load/histogram.h"
#include "client/load/recorder.h"

namespace attendant::client {

// A histogram of nanoseconds as HdrHistogram's tools exchange it: its V2 encoding (counts as ZigZag
// LEB128, runs of empty buckets as one negative number), compressed with zlib, in base64.
std::string EncodeHdr(const Histogram& histogram);

// A log in HdrHistogram's format 1.3, which HistogramLogAnalyzer and the libraries of Java, Python,
// Go and Rust read. A line for each interval with response times, and one line with the tag
// `service` for the service times of the whole window. `start` is when the window began.
void WriteHdrLog(absl::Time start, const LoadDetail& detail, absl::Duration window,
                 std::ostream& out);

}  // namespace attendant::client
