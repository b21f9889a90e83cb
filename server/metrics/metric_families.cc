// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/metric_families.h"

namespace attendant {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

prometheus::Family<prometheus::Histogram>& Histogram(prometheus::Registry& registry,
                                                     const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

prometheus::Family<prometheus::Counter>& Counter(prometheus::Registry& registry, const char* name,
                                                 const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

prometheus::Family<prometheus::Gauge>& Gauge(prometheus::Registry& registry, const char* name,
                                             const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

}  // namespace

MetricFamilies::MetricFamilies(prometheus::Registry& registry)
    : request_duration_seconds(Histogram(
          registry, "attendant_request_duration_seconds",
          "Time of a request, whole (phase=\"total\") and by its phases. The other phases "
          "of a method appear with its first answer.")),
      batch_tokens(Histogram(registry, "attendant_batch_tokens", "Tokens of a computed batch.")),
      batch_requests(Histogram(registry, "attendant_batch_requests",
                               "Requests that a computed batch served.")),
      sequence_tokens(
          Histogram(registry, "attendant_sequence_tokens", "Tokens of a sequence that came in.")),
      requests_total(
          Counter(registry, "attendant_requests_total", "Requests answered, by gRPC status code.")),
      tokens_total(
          Counter(registry, "attendant_tokens_total",
                  "Tokens that came in: computed (valid), and masked or padded (padding).")),
      batches_total(Counter(registry, "attendant_batches_total", "Batches computed.")),
      rejected_total(Counter(registry, "attendant_rejected_total",
                             "Requests that were refused, or ended before they were computed.")),
      refused_total(Counter(registry, "attendant_refused_total",
                            "Requests and calls refused, and calls ended, whatever the model: to "
                            "protect memory, or for want of an API key.")),
      access_log_lines_total(Counter(registry, "attendant_access_log_lines_total",
                                     "Lines of the access log: written, or lost.")),
      spans_total(Counter(registry, "attendant_spans_total",
                          "Spans of traces: taken by the collector (exported), given up after "
                          "attempts to send them (failed), or left out because too many waited "
                          "(dropped).")),
      span_exports_total(Counter(registry, "attendant_span_exports_total",
                                 "Requests to the collector of traces: each attempt counts.")),
      queue_tokens(
          Gauge(registry, "attendant_queue_tokens",
                "Tokens that wait for a batch; of attention, operations in units of 2^20.")),
      queue_requests(Gauge(registry, "attendant_queue_requests",
                           "Requests with sequences that wait for a batch.")),
      stalled_workers(Gauge(registry, "attendant_stalled_workers",
                            "Workers whose batch runs for longer than --stall_timeout_s.")),
      lost_workers(Gauge(registry, "attendant_lost_workers",
                         "Workers whose device was lost, until the model is loaded again.")),
      model_failed(Gauge(registry, "attendant_model_failed",
                         "1 where a version of the model could not be loaded, or not loaded anew, "
                         "at the last attempt.")),
      inflight_requests(
          Gauge(registry, "attendant_inflight_requests",
                "Requests that are decoded and not yet computed: in the queue or in a batch.")),
      model_loaded_info(Gauge(registry, "attendant_model_loaded_info",
                              "1 for a model that serves, also while it is idle; the labels say "
                              "what computes it.")),
      model_load_seconds(Gauge(registry, "attendant_model_load_seconds",
                               "Time from the start of loading until the model was ready.")),
      model_weight_bytes(Gauge(registry, "attendant_model_weight_bytes",
                               "Memory of the weights, in the format that computes.")),
      model_arena_bytes(Gauge(registry, "attendant_model_arena_bytes",
                              "Memory of the model's sessions for batches in work.")),
      connections_total(Counter(registry, "attendant_connections_total",
                                "Connections to the gRPC port: accepted, or closed at once because "
                                "of a limit or for want of file descriptors.")),
      http_connections_total(Counter(
          registry, "attendant_http_connections_total",
          "Connections to the HTTP port that have ended: by the client or after the last answer "
          "(normal), or by the server for a reason.")),
      connections(Gauge(registry, "attendant_connections", "Open connections to the gRPC port.")),
      ready(Gauge(registry, "attendant_ready",
                  "1 while the server is ready, as /readyz says. With --model_control=explicit it "
                  "is so without any model.")),
      reload_failed(Gauge(registry, "attendant_reload_failed",
                          "1 where API keys or certificates could not be read again: those read "
                          "before count.")),
      build_info(Gauge(registry, "attendant_build_info", "1; the labels say what is running.")) {}

// Six buckets a decade, 1.8 an octave, from 100 us to 60 s. Neighbours differ by at most 5/3, so a
// quantile that histogram_quantile() interpolates inside its bucket is off by less than that, in
// practice by about a fifth; the bounds are the round numbers that latency objectives are written
// in, and a share "below 5 ms" is exact. A method in use has 39 time series for each of 5 phases.
const Buckets& DurationBuckets() {
  static const Buckets* const buckets =
      new Buckets{100e-6, 150e-6, 200e-6, 300e-6, 500e-6, 700e-6,  //
                  1e-3,   1.5e-3, 2e-3,   3e-3,   5e-3,   7e-3,    //
                  10e-3,  15e-3,  20e-3,  30e-3,  50e-3,  70e-3,   //
                  100e-3, 150e-3, 200e-3, 300e-3, 500e-3, 700e-3,  //
                  1,      1.5,    2,      3,      5,      7,       //
                  10,     15,     20,     30,     45,     60};
  return *buckets;
}

// Powers of two: model limits and token budgets are. From a very short text to a large GPU batch.
const Buckets& TokenBuckets() {
  static const Buckets* const buckets = new Buckets{
      1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
  return *buckets;
}

const Buckets& RequestBuckets() {
  static const Buckets* const buckets =
      new Buckets{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512};
  return *buckets;
}

}  // namespace attendant
