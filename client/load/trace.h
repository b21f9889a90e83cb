// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace attendant::client {

// A recorded request: when it came, and what it held.
struct TraceEntry {
  absl::Duration time;    // since the first one
  int64_t sequences = 1;  // of token ids
  int64_t tokens = 0;     // of all sequences
  std::string text = {};  // instead of ids, when not empty
};

// Reads a trace, one JSON object a line, in either form:
//   {"timestamp": 120.5, "input_length": 48}         milliseconds and tokens, as AIPerf and
//   Mooncake
//   {"timestamp": 120.5, "text_input": "some text"}  write them
//   {"time": "2026-11-22T09:00:00.1Z", "tokens": 48, "sequences": 1}  the server's access log
// The order of the lines does not matter. Lines of an access log without tokens (refused requests,
// and calls that compute nothing) are left out. FAILED_PRECONDITION names the line that is neither,
// or whose time is more than 31 years from the first; so does a trace of more than a million
// requests or 64 million tokens, or without requests.
absl::StatusOr<std::vector<TraceEntry>> ReadTrace(std::istream& in);

}  // namespace attendant::client
