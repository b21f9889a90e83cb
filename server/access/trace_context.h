// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// A span of a distributed trace, as W3C Trace Context names it.
struct TraceContext {
  uint64_t trace_high = 0;  // the trace's id: not both 0
  uint64_t trace_low = 0;
  uint64_t span = 0;    // not 0
  uint64_t parent = 0;  // the span that called this one; 0: the trace begins here
  bool sampled = false;
  std::string state = {};  // tracestate, its members joined by commas; empty: none

  std::string trace_id() const;     // 32 lower-case hexadecimal digits
  std::string span_id() const;      // 16
  std::string traceparent() const;  // of version 00
};

// The span of a caller, from the headers traceparent and tracestate. Nothing when traceparent is
// not valid; without a state when tracestate is not: both as the specification wants it.
std::optional<TraceContext> ParseTraceContext(absl::string_view traceparent,
                                              absl::string_view tracestate);

// True if a client's x-request-id is valid: 1 to 256 printable ASCII characters.
bool IsRequestId(absl::string_view id);

}  // namespace attendant
