// SPDX-License-Identifier: Apache-2.0
#include "client/cli/load/load_report.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/format.h"

namespace attendant::client {
namespace {

std::string Plural(int64_t count, absl::string_view noun) {
  return absl::StrCat(Thousands(count), " ", noun, count == 1 ? "" : "s");
}

std::string DescribeArrivals(const Arrivals& arrivals) {
  switch (arrivals.kind) {
    case Arrivals::Kind::kPoisson:
      return "at random times";
    case Arrivals::Kind::kConstant:
      return "evenly";
    case Arrivals::Kind::kBursts:
      return absl::StrCat("in bursts of ", arrivals.burst, " at random times");
    case Arrivals::Kind::kTrace:
      return absl::StrFormat("at the times of %d recorded requests", arrivals.times->size());
  }
  return "";
}

std::string FormatErrors(const LoadSummary& summary) {
  std::string out;
  for (const auto& [code, error] : summary.errors) {
    absl::StrAppendFormat(
        &out, "errors       %s %s, after p50 %s   p99 %s   max %s, the first: %s\n", code,
        Thousands(error.count), ShortDuration(error.p50), ShortDuration(error.p99),
        ShortDuration(error.max), OneLine(error.first_message, 200));
  }
  return out;
}

std::string FormatModel(const LoadDescription& description) {
  const std::string model = OneLine(description.model);  // some servers name it
  if (description.model_version == 0) return model;
  return absl::StrCat(model, ", version ", description.model_version);
}

std::string FormatRequests(const LoadResult& result) {
  const LoadSummary& summary = result.summary;
  std::string out = absl::StrFormat("requests     %s ok, %s failed", Thousands(summary.ok),
                                    Thousands(summary.failed));
  if (summary.cut_off > 0) absl::StrAppend(&out, ", ", Thousands(summary.cut_off), " cut off");
  if (summary.not_sent > 0) {
    absl::StrAppendFormat(&out, ", %s not sent (%d were outstanding)", Thousands(summary.not_sent),
                          result.description.plan.max_outstanding);
  }
  if (summary.resent > 0) {
    absl::StrAppend(&out, ", ", Thousands(summary.resent), " sent again on a new connection");
  }
  absl::StrAppendFormat(&out, " in %s after %s of warm-up%s\n", ShortDuration(summary.window),
                        ShortDuration(result.description.plan.warmup),
                        summary.interrupted ? ", interrupted" : "");
  return out;
}

std::vector<std::string> LatencyRow(absl::string_view name, const Latency& latency) {
  return {std::string(name),          ShortDuration(latency.mean), ShortDuration(latency.p50),
          ShortDuration(latency.p90), ShortDuration(latency.p99),  ShortDuration(latency.p999),
          ShortDuration(latency.max)};
}

// Both times side by side: where they differ, requests have waited in the client.
std::string FormatLatency(const LoadResult& result) {
  std::vector<std::vector<std::string>> rows = {
      {"", "mean", "p50", "p90", "p99", "p99.9", "max"},
      LatencyRow("response time", result.summary.response),
      LatencyRow("service time", result.summary.service)};
  if (result.description.plan.open_loop()) {
    rows.push_back(LatencyRow("send lag", result.summary.send_lag));
  }
  return Table(rows);
}

std::string FormatClient(const LoadResult& result) {
  const ClientCost& cost = result.cost;
  std::string out =
      absl::StrFormat("client       %.2f CPU seconds in %.2f s\n", cost.cpu_s, cost.wall_s);
  const std::string bottleneck = ClientBottleneck(result);
  if (!bottleneck.empty()) {
    absl::StrAppend(&out, "warning      the client was the bottleneck: ", bottleneck, "\n");
  }
  return out;
}

}  // namespace

std::string FormatRate(double per_s) {
  return per_s < 100 ? absl::StrFormat("%.1f", per_s) : Thousands(std::llround(per_s));
}

std::string DescribePlan(const LoadPlan& plan) {
  const std::string connections = Plural(plan.connections, "connection");
  if (plan.open_loop()) {
    return absl::StrFormat("open loop, %s requests/s %s on %s, at most %d outstanding",
                           FormatRate(plan.requests_per_s), DescribeArrivals(plan.arrivals),
                           connections, plan.max_outstanding);
  }
  return absl::StrCat("closed loop, ", connections, " x ", plan.max_outstanding / plan.connections,
                      " outstanding");
}

std::string ShortDuration(absl::Duration duration) {
  if (duration == absl::ZeroDuration()) return "0 s";
  const double us = absl::ToDoubleMicroseconds(duration);
  const auto digits = [](double value) { return value < 9.995 ? 2 : value < 99.95 ? 1 : 0; };
  if (us < 999.5) return absl::StrFormat("%.*f us", digits(us), us);
  if (us < 999.5e3) return absl::StrFormat("%.*f ms", digits(us / 1e3), us / 1e3);
  return absl::StrFormat("%.*f s", digits(us / 1e6), us / 1e6);
}

std::string FormatReport(const LoadResult& result) {
  const LoadDescription& description = result.description;
  const LoadSummary& summary = result.summary;
  std::string out = absl::StrFormat("%s at %s, model %s\n%s\n%s\n\n", description.protocol,
                                    description.server, FormatModel(description),
                                    DescribePlan(description.plan), description.payload);
  absl::StrAppend(&out, FormatRequests(result));
  absl::StrAppendFormat(&out, "throughput   %s requests/s   %s sequences/s   %s tokens/s\n",
                        FormatRate(summary.requests_per_s), FormatRate(summary.sequences_per_s),
                        summary.tokens_per_s ? FormatRate(*summary.tokens_per_s) : "unknown");
  if (summary.server.has_value()) {
    absl::StrAppendFormat(
        &out, "server mean  tokenize %s   queue %s   compute %s   total %s\n",
        ShortDuration(summary.server->tokenize), ShortDuration(summary.server->queue),
        ShortDuration(summary.server->compute), ShortDuration(summary.server->total));
  }
  return absl::StrCat(out, FormatClient(result), FormatErrors(summary), "\n",
                      FormatLatency(result));
}

std::string SweepHeading() {
  return absl::StrFormat("%10s %12s %10s %10s %10s %8s\n", "offered/s", "answered/s", "p50", "p99",
                         "max", "errors");
}

std::string SweepLine(const LoadResult& result) {
  const LoadSummary& summary = result.summary;
  return absl::StrFormat("%10s %12s %10s %10s %10s %8s\n",
                         FormatRate(result.description.plan.requests_per_s),
                         FormatRate(summary.requests_per_s), ShortDuration(summary.response.p50),
                         ShortDuration(summary.response.p99), ShortDuration(summary.response.max),
                         Thousands(summary.failed + summary.not_sent));
}

std::string SweepWarnings(std::span<const LoadResult> results) {
  std::string out;
  for (const LoadResult& result : results) {
    const std::string bottleneck = ClientBottleneck(result);
    if (bottleneck.empty()) continue;
    absl::StrAppend(&out, "warning  at ", FormatRate(result.description.plan.requests_per_s),
                    " requests/s the client was the bottleneck: ", bottleneck, "\n");
  }
  return out;
}

}  // namespace attendant::client
