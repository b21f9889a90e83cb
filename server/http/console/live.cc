// SPDX-License-Identifier: Apache-2.0
#include "server/http/console/live.h"

#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/http/json/json_writer.h"
#include "server/metrics/metric_families.h"

namespace attendant {
namespace {

using Histogram = ModelSample::Histogram;

// Fifteen digits: differences of large sums must not be lost.
std::string Number(double value) { return absl::StrFormat("%.15g", value); }

void AppendHistogram(absl::string_view name, const Histogram& histogram, std::string& json) {
  absl::StrAppend(&json, "\"", name, "\":{\"sum\":", Number(histogram.sum), ",\"counts\":[",
                  absl::StrJoin(histogram.counts, ","), "]}");
}

void AppendModel(const ModelSample& sample, std::string& json) {
  json += "{\"model\":";
  AppendJsonString(sample.model, json);
  for (const auto& [name, value] : {std::pair("requests", sample.requests),
                                    {"failed", sample.failed},
                                    {"rejected", sample.rejected},
                                    {"tokens", sample.tokens},
                                    {"padding_tokens", sample.padding_tokens},
                                    {"inflight", sample.inflight},
                                    {"queue_tokens", sample.queue_tokens},
                                    {"queue_requests", sample.queue_requests}}) {
    absl::StrAppend(&json, ",\"", name, "\":", static_cast<int64_t>(value));
  }
  json += ",\"phases\":{";
  for (size_t phase = 0; phase < sample.phases.size(); ++phase) {
    if (phase > 0) json.push_back(',');
    AppendHistogram(kPhases[phase].name, sample.phases[phase], json);
  }
  json += "},";
  AppendHistogram("batch_tokens", sample.batch_tokens, json);
  json += ",";
  AppendHistogram("batch_requests", sample.batch_requests, json);
  json += "}";
}

double ProcessorSeconds() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                               absl::DurationFromTimeval(usage.ru_stime));
}

constexpr char kHistogramSchema[] = R"({"type":"object","properties":{"sum":{"type":"number"},
"counts":{"type":"array","items":{"type":"integer"}}}})";
constexpr char kBoundsSchema[] = R"({"type":"array","items":{"type":"number"}})";

}  // namespace

std::string LiveJson(const ServerMetrics& metrics, absl::string_view version) {
  std::string json = "{\"version\":";
  AppendJsonString(version, json);
  absl::StrAppend(&json, ",\"time_ms\":", absl::ToUnixMillis(absl::Now()),
                  ",\"processor_s\":", Number(ProcessorSeconds()), ",\"bounds\":{\"seconds\":[",
                  absl::StrJoin(DurationBuckets(), ","), "],\"tokens\":[",
                  absl::StrJoin(TokenBuckets(), ","), "],\"requests\":[",
                  absl::StrJoin(RequestBuckets(), ","), "]},\"models\":");
  AppendJsonArray(metrics.Sample(), json,
                  [&json](const ModelSample& sample) { AppendModel(sample, json); });
  return json + "}";
}

std::string LiveSchema() {
  std::string phases;
  for (const auto& phase : kPhases) {
    absl::StrAppend(&phases, phases.empty() ? "" : ",", "\"", phase.name, "\":", kHistogramSchema);
  }
  return absl::StrCat(
      R"({"type":"object","properties":{"version":{"type":"string"},"time_ms":{"type":"integer"},)"
      R"("processor_s":{"type":"number"},"bounds":{"type":"object","properties":{"seconds":)",
      kBoundsSchema, R"(,"tokens":)", kBoundsSchema, R"(,"requests":)", kBoundsSchema,
      R"(}},"models":{"type":"array","items":{"type":"object","properties":{)"
      R"("model":{"type":"string"},"requests":{"type":"integer"},"failed":{"type":"integer"},)"
      R"("rejected":{"type":"integer"},"tokens":{"type":"integer"},)"
      R"("padding_tokens":{"type":"integer"},"inflight":{"type":"integer"},)"
      R"("queue_tokens":{"type":"integer"},"queue_requests":{"type":"integer"},)"
      R"("phases":{"type":"object","properties":{)",
      phases, R"(}},"batch_tokens":)", kHistogramSchema, R"(,"batch_requests":)", kHistogramSchema,
      "}}}}}");
}

}  // namespace attendant
