// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/tracing/request_trace.h"
#include "server/tracing/span.h"

namespace attendant {

// The name of a batch's span, by TracedBatch::id. It is the root of a trace of its own, since it
// works for many requests.
SpanIds BatchIds(uint64_t id);

// The spans of a request, its own first: then one for each phase that it went through, and those of
// the batches that it tells of. It links to the spans of all its batches. Names and attributes
// follow OpenTelemetry's conventions for RPC and HTTP servers; attributes of this server begin with
// "attendant.". The same request gives the same spans.
std::vector<OtlpSpan> MakeSpans(const RequestTrace& request);

// The number of spans that MakeSpans returns. Takes nanoseconds.
size_t NumSpans(const RequestTrace& request);

}  // namespace attendant
