// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant {

// The ids that name a span everywhere.
struct SpanIds {
  uint64_t trace_high = 0, trace_low = 0;
  uint64_t span = 0;

  friend bool operator==(const SpanIds&, const SpanIds&) = default;
};

struct SpanAttribute {
  std::string name;
  std::variant<std::string, int64_t> value;
};

// As in opentelemetry.proto.trace.v1.Span.
enum class SpanKind { kInternal = 1, kServer = 2 };

// A span as OpenTelemetry knows it.
struct OtlpSpan {
  SpanIds ids;
  uint64_t parent = 0;  // of the same trace; 0: none
  std::string state = {};
  std::string name = {};
  SpanKind kind = SpanKind::kInternal;
  absl::Time start = {}, end = {};
  std::vector<SpanAttribute> attributes = {};
  std::vector<SpanIds> links = {};
  std::string error = {};  // empty: the span's status is not an error
};

}  // namespace attendant
