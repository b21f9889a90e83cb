// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace attendant {

// Every attendant_* family but those of devices: its name, help text and labels, stated once.
struct MetricFamilies {
  explicit MetricFamilies(prometheus::Registry& registry);

  prometheus::Family<prometheus::Histogram>& request_duration_seconds;  // {model, method, phase}
  prometheus::Family<prometheus::Histogram>& batch_tokens;              // {model}
  prometheus::Family<prometheus::Histogram>& batch_requests;            // {model}
  prometheus::Family<prometheus::Histogram>& sequence_tokens;           // {model}
  prometheus::Family<prometheus::Counter>& requests_total;              // {model, method, code}
  prometheus::Family<prometheus::Counter>& tokens_total;                // {model, kind}
  prometheus::Family<prometheus::Counter>& batches_total;               // {model}
  prometheus::Family<prometheus::Counter>& rejected_total;              // {model, reason}
  prometheus::Family<prometheus::Counter>& refused_total;               // {reason}
  prometheus::Family<prometheus::Counter>& access_log_lines_total;      // {result}
  prometheus::Family<prometheus::Counter>& spans_total;                 // {result}
  prometheus::Family<prometheus::Counter>& span_exports_total;          // {result}
  prometheus::Family<prometheus::Gauge>& queue_tokens;                  // {model}
  prometheus::Family<prometheus::Gauge>& queue_requests;                // {model}
  prometheus::Family<prometheus::Gauge>& stalled_workers;               // {model}
  prometheus::Family<prometheus::Gauge>& lost_workers;                  // {model}
  prometheus::Family<prometheus::Gauge>& model_failed;                  // {model}
  prometheus::Family<prometheus::Gauge>& inflight_requests;             // {model}
  prometheus::Family<prometheus::Gauge>& model_loaded_info;         // {model, dtype, backend, isa}
  prometheus::Family<prometheus::Gauge>& model_load_seconds;        // {model}
  prometheus::Family<prometheus::Gauge>& model_weight_bytes;        // {model}
  prometheus::Family<prometheus::Gauge>& model_arena_bytes;         // {model}
  prometheus::Family<prometheus::Counter>& connections_total;       // {result}
  prometheus::Family<prometheus::Counter>& http_connections_total;  // {result}
  prometheus::Family<prometheus::Gauge>& connections;               // {}
  prometheus::Family<prometheus::Gauge>& ready;                     // {}
  prometheus::Family<prometheus::Gauge>& reload_failed;             // {file}
  prometheus::Family<prometheus::Gauge>& build_info;                // {version, compiler}
};

// Bucket bounds. A sample on a bound counts as below it.
const prometheus::Histogram::BucketBoundaries& DurationBuckets();  // seconds
const prometheus::Histogram::BucketBoundaries& TokenBuckets();
const prometheus::Histogram::BucketBoundaries& RequestBuckets();

}  // namespace attendant
