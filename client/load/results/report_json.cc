// SPDX-License-Identifier: Apache-2.0
#include "client/load/results/report_json.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/load/results/batches.h"
#include "client/load/results/statistics.h"

namespace attendant::client {
namespace {

using ReportJson = nlohmann::ordered_json;

constexpr double kSecondsPerNs = 1e-9;
constexpr size_t kBucketsInBin = 256;  // four bins to a power of two

ReportJson SecondsOf(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

ReportJson SecondsOf(int64_t ns) { return static_cast<double>(ns) * kSecondsPerNs; }

ReportJson LatencyToJson(const Latency& latency) {
  return {{"mean", SecondsOf(latency.mean)},  {"p50", SecondsOf(latency.p50)},
          {"p90", SecondsOf(latency.p90)},    {"p99", SecondsOf(latency.p99)},
          {"p99.9", SecondsOf(latency.p999)}, {"max", SecondsOf(latency.max)}};
}

// 0 to 95 in steps of 5, then ten steps for each further nine: 91 to 99, 99.1 to 99.9, ...
std::vector<double> ShownPercents() {
  std::vector<double> percents;
  for (int percent = 0; percent < 90; percent += 5) percents.push_back(percent);
  for (double rest = 10; rest > 0.0005; rest /= 10) {
    for (int step = 0; step < 9; ++step) percents.push_back(100 - rest + step * rest / 10);
  }
  percents.push_back(100);
  return percents;
}

ReportJson DistributionToJson(const Histogram& histogram) {
  ReportJson points = ReportJson::array();
  if (histogram.count() == 0) return points;
  for (double percent : ShownPercents()) {
    points.push_back({percent, SecondsOf(histogram.Percentile(percent))});
  }
  return points;
}

ReportJson BinsToJson(const Histogram& histogram) {
  ReportJson bins = ReportJson::array();
  const std::span<const int64_t> buckets = histogram.buckets();
  for (size_t begin = 0; begin < buckets.size(); begin += kBucketsInBin) {
    int64_t count = 0;
    for (size_t i = begin; i < std::min(begin + kBucketsInBin, buckets.size()); ++i) {
      count += buckets[i];
    }
    if (count == 0) continue;
    bins.push_back({SecondsOf(Histogram::LowestOf(begin)),
                    SecondsOf(Histogram::LowestOf(begin + kBucketsInBin)), count});
  }
  return bins;
}

ReportJson IntervalsToJson(const IntervalSeries& series, absl::Duration window) {
  ReportJson intervals = ReportJson::array();
  absl::Duration start = absl::ZeroDuration();
  for (const Interval& interval : series.intervals()) {
    if (start >= window) break;
    const Histogram& response_ns = interval.response_ns;
    intervals.push_back({{"start", SecondsOf(start)},
                         {"length", SecondsOf(std::min(series.length(), window - start))},
                         {"offered", interval.offered},
                         {"failed", interval.failed},
                         {"finished", interval.finished},
                         {"p50", SecondsOf(response_ns.Percentile(50))},
                         {"p90", SecondsOf(response_ns.Percentile(90))},
                         {"p99", SecondsOf(response_ns.Percentile(99))},
                         {"max", SecondsOf(response_ns.max())}});
    start += series.length();
  }
  return intervals;
}

ReportJson ConfidenceToJson(const BatchFigures& figures) {
  ReportJson json = ReportJson::object();
  for (const auto& [name, values] : figures) {
    const std::optional<Estimate> estimate = EstimateMean(values);
    if (!estimate.has_value()) continue;
    json[name] = {{"value", estimate->value}, {"half_width", estimate->half_width}};
  }
  return json;
}

ReportJson ClientToJson(const LoadResult& result) {
  const ClientCost& cost = result.cost;
  const std::string bottleneck = ClientBottleneck(result);
  ReportJson json{{"cpu_s", cost.cpu_s},
                  {"busiest_thread_s", cost.busiest_thread_s},
                  {"wall_s", cost.wall_s},
                  {"processors", cost.processors}};
  json["bottleneck"] = bottleneck.empty() ? ReportJson(nullptr) : ReportJson(bottleneck);
  return json;
}

const char* WordOf(Arrivals::Kind kind) {
  switch (kind) {
    case Arrivals::Kind::kPoisson:
      return "poisson";
    case Arrivals::Kind::kConstant:
      return "constant";
    case Arrivals::Kind::kBursts:
      return "bursts";
    case Arrivals::Kind::kTrace:
      return "trace";
  }
  return "";
}

// As --arrivals takes them.
std::string ArrivalsToJson(const Arrivals& arrivals) {
  const bool bursts = arrivals.kind == Arrivals::Kind::kBursts;
  return absl::StrCat(WordOf(arrivals.kind), bursts ? absl::StrCat(":", arrivals.burst) : "");
}

void AddPlan(const LoadDescription& description, ReportJson& json) {
  const LoadPlan& plan = description.plan;
  json["loop"] = plan.open_loop() ? "open" : "closed";
  if (plan.open_loop()) {
    json["rate"] = plan.requests_per_s;
    json["arrivals"] = ArrivalsToJson(plan.arrivals);
  }
  json["connections"] = plan.connections;
  json["max_outstanding"] = plan.max_outstanding;
  json["warmup_s"] = SecondsOf(plan.warmup);
}

void AddServer(const LoadSummary& summary, ReportJson& json) {
  json["server_mean_s"] = nullptr;
  if (!summary.server.has_value()) return;
  json["server_mean_s"] = {{"tokenize", SecondsOf(summary.server->tokenize)},
                           {"queue", SecondsOf(summary.server->queue)},
                           {"compute", SecondsOf(summary.server->compute)},
                           {"total", SecondsOf(summary.server->total)}};
}

void AddErrors(const LoadSummary& summary, ReportJson& json) {
  json["errors"] = ReportJson::object();
  for (const auto& [code, error] : summary.errors) {
    json["errors"][code] = {{"count", error.count},
                            {"first_message", error.first_message},
                            {"latency_s",
                             {{"p50", SecondsOf(error.p50)},
                              {"p99", SecondsOf(error.p99)},
                              {"max", SecondsOf(error.max)}}}};
  }
}

void AddDetail(const LoadResult& result, ReportJson& json) {
  const LoadDetail& detail = result.detail;
  const absl::Duration window = result.summary.window;
  const BatchFigures figures = BatchFiguresOf(detail.series, window);
  json["interval_s"] = SecondsOf(detail.series.length());
  json["intervals"] = IntervalsToJson(detail.series, window);
  json["batches"] = figures;
  json["confidence_95"] = ConfidenceToJson(figures);
  json["distribution"] = {{"response", DistributionToJson(detail.response_ns)},
                          {"service", DistributionToJson(detail.service_ns)}};
  json["bins"] = {{"response", BinsToJson(detail.response_ns)},
                  {"service", BinsToJson(detail.service_ns)}};
}

}  // namespace

ReportJson ReportToJson(const LoadResult& result) {
  const LoadDescription& description = result.description;
  const LoadSummary& summary = result.summary;
  ReportJson json{
      {"protocol", description.protocol},
      {"server", description.server},
      {"model", description.model},
      {"model_version", description.model_version},
      {"payload", description.payload},
      {"start", absl::FormatTime(absl::RFC3339_sec, result.start, absl::UTCTimeZone())}};
  AddPlan(description, json);
  json["window_s"] = SecondsOf(summary.window);
  json["interrupted"] = summary.interrupted;
  json["requests"] = {{"ok", summary.ok},
                      {"failed", summary.failed},
                      {"cut_off", summary.cut_off},
                      {"not_sent", summary.not_sent}};
  json["resent"] = summary.resent;
  json["requests_per_s"] = summary.requests_per_s;
  json["sequences_per_s"] = summary.sequences_per_s;
  json["tokens_per_s"] =
      summary.tokens_per_s ? ReportJson(*summary.tokens_per_s) : ReportJson(nullptr);
  json["latency_s"] = LatencyToJson(summary.response);
  json["service_s"] = LatencyToJson(summary.service);
  json["send_lag_s"] = LatencyToJson(summary.send_lag);
  json["max_send_lag_s"] = SecondsOf(summary.send_lag.max);
  json["client"] = ClientToJson(result);
  AddServer(summary, json);
  AddErrors(summary, json);
  AddDetail(result, json);
  return json;
}

}  // namespace attendant::client
