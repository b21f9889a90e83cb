// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/tracing/span.h"

namespace attendant {

// ExportTraceServiceRequest of OTLP in JSON: ids in hexadecimal, 64-bit numbers as strings, enums
// as numbers. `resource` names who sends. Text that is not UTF-8 is repaired.
std::string ToOtlpJson(const std::vector<SpanAttribute>& resource, absl::string_view version,
                       std::span<const OtlpSpan> spans);

// The answer of a collector to a request that it took.
struct OtlpAnswer {
  int64_t rejected_spans = 0;
  std::string message = {};  // the reason, at most 200 bytes
};
// Reads ExportTraceServiceResponse. Any other text has rejected nothing.
OtlpAnswer ReadOtlpAnswer(absl::string_view json);

}  // namespace attendant
