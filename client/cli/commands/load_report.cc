// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/load_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/format.h"

namespace attendant::client {
namespace {

constexpr size_t kBarWidth = 30;

std::string FormatRate(double per_s) {
  return per_s < 100 ? absl::StrFormat("%.1f", per_s) : Thousands(std::llround(per_s));
}

std::string Plural(int64_t count, absl::string_view noun) {
  return absl::StrCat(Thousands(count), " ", noun, count == 1 ? "" : "s");
}

std::string DescribePlan(const LoadPlan& plan) {
  const std::string connections = Plural(plan.connections, "connection");
  if (plan.requests_per_s > 0) {
    return absl::StrFormat("open loop, %s requests/s at random times on %s, at most %d outstanding",
                           FormatRate(plan.requests_per_s), connections, plan.max_outstanding);
  }
  return absl::StrCat("closed loop, ", connections, " x ", plan.max_outstanding / plan.connections,
                      " outstanding");
}

nlohmann::ordered_json Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

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

double Progress(const LoadPlan& plan, const LoadSummary& summary, absl::Duration now) {
  double done = 0;
  if (plan.max_requests > 0) {
    done = static_cast<double>(summary.ok + summary.failed + summary.not_sent) /
           static_cast<double>(plan.max_requests);
  }
  if (plan.end() != absl::InfiniteDuration()) {
    done = std::max(done, absl::FDivDuration(now, plan.end()));
  }
  return std::clamp(done, 0.0, 1.0);
}

}  // namespace

std::string ShortDuration(absl::Duration duration) {
  if (duration == absl::ZeroDuration()) return "0 s";
  const double us = absl::ToDoubleMicroseconds(duration);
  const auto digits = [](double value) { return value < 9.995 ? 2 : value < 99.95 ? 1 : 0; };
  if (us < 999.5) return absl::StrFormat("%.*f us", digits(us), us);
  if (us < 999.5e3) return absl::StrFormat("%.*f ms", digits(us / 1e3), us / 1e3);
  return absl::StrFormat("%.*f s", digits(us / 1e6), us / 1e6);
}

std::string FormatReport(const LoadDescription& description, const LoadSummary& summary) {
  std::string out =
      absl::StrFormat("%s at %s, model %s\n%s\n%s\n\n", description.protocol, description.server,
                      description.model, DescribePlan(description.plan), description.payload);
  absl::StrAppendFormat(&out, "requests     %s ok, %s failed", Thousands(summary.ok),
                        Thousands(summary.failed));
  if (summary.cut_off > 0) absl::StrAppend(&out, ", ", Thousands(summary.cut_off), " cut off");
  if (summary.not_sent > 0) {
    absl::StrAppendFormat(&out, ", %s not sent (%d were outstanding)", Thousands(summary.not_sent),
                          description.plan.max_outstanding);
  }
  absl::StrAppendFormat(&out, " in %s after %s of warm-up\n", ShortDuration(summary.window),
                        ShortDuration(description.plan.warmup));
  absl::StrAppendFormat(&out, "throughput   %s requests/s   %s sequences/s   %s tokens/s\n",
                        FormatRate(summary.requests_per_s), FormatRate(summary.sequences_per_s),
                        summary.tokens_per_s ? FormatRate(*summary.tokens_per_s) : "unknown");
  absl::StrAppendFormat(&out, "latency      mean %s   p50 %s   p90 %s   p99 %s   max %s\n",
                        ShortDuration(summary.mean), ShortDuration(summary.p50),
                        ShortDuration(summary.p90), ShortDuration(summary.p99),
                        ShortDuration(summary.max));
  if (summary.server.has_value()) {
    absl::StrAppendFormat(
        &out, "server mean  tokenize %s   queue %s   compute %s   total %s\n",
        ShortDuration(summary.server->tokenize), ShortDuration(summary.server->queue),
        ShortDuration(summary.server->compute), ShortDuration(summary.server->total));
  }
  if (description.plan.requests_per_s > 0) {
    absl::StrAppendFormat(&out, "generator    sent at most %s late (counted in the latency)\n",
                          ShortDuration(summary.max_send_lag));
  }
  return absl::StrCat(out, FormatErrors(summary));
}

nlohmann::ordered_json ReportToJson(const LoadDescription& description,
                                    const LoadSummary& summary) {
  const LoadPlan& plan = description.plan;
  nlohmann::ordered_json json{{"protocol", description.protocol},
                              {"server", description.server},
                              {"model", description.model},
                              {"payload", description.payload},
                              {"loop", plan.requests_per_s > 0 ? "open" : "closed"}};
  if (plan.requests_per_s > 0) json["rate"] = plan.requests_per_s;
  json["connections"] = plan.connections;
  json["max_outstanding"] = plan.max_outstanding;
  json["warmup_s"] = Seconds(plan.warmup);
  json["window_s"] = Seconds(summary.window);
  json["requests"] = {{"ok", summary.ok},
                      {"failed", summary.failed},
                      {"cut_off", summary.cut_off},
                      {"not_sent", summary.not_sent}};
  json["requests_per_s"] = summary.requests_per_s;
  json["sequences_per_s"] = summary.sequences_per_s;
  json["tokens_per_s"] = summary.tokens_per_s ? nlohmann::ordered_json(*summary.tokens_per_s)
                                              : nlohmann::ordered_json(nullptr);
  json["latency_s"] = {{"mean", Seconds(summary.mean)},  {"p50", Seconds(summary.p50)},
                       {"p90", Seconds(summary.p90)},    {"p99", Seconds(summary.p99)},
                       {"p99.9", Seconds(summary.p999)}, {"max", Seconds(summary.max)}};
  json["max_send_lag_s"] = Seconds(summary.max_send_lag);
  json["server_mean_s"] = nullptr;
  if (summary.server.has_value()) {
    json["server_mean_s"] = {{"tokenize", Seconds(summary.server->tokenize)},
                             {"queue", Seconds(summary.server->queue)},
                             {"compute", Seconds(summary.server->compute)},
                             {"total", Seconds(summary.server->total)}};
  }
  json["errors"] = nlohmann::ordered_json::object();
  for (const auto& [code, error] : summary.errors) {
    json["errors"][code] = {
        {"count", error.count},
        {"first_message", error.first_message},
        {"latency_s",
         {{"p50", Seconds(error.p50)}, {"p99", Seconds(error.p99)}, {"max", Seconds(error.max)}}}};
  }
  return json;
}

std::string FormatProgress(const LoadPlan& plan, const LoadSummary& summary, absl::Duration now) {
  const double done = Progress(plan, summary, now);
  const size_t filled = static_cast<size_t>(done * static_cast<double>(kBarWidth));
  std::string bar(filled, '=');
  if (filled < kBarWidth) bar += '>';
  bar.resize(kBarWidth, ' ');
  std::string line = absl::StrFormat("[%s] %3.0f %%  ", bar, done * 100);
  if (now < plan.warmup) return absl::StrCat(line, "warming up");
  absl::StrAppendFormat(&line, "%s requests/s  p99 %s", FormatRate(summary.requests_per_s),
                        ShortDuration(summary.p99));
  if (summary.failed > 0) absl::StrAppend(&line, "  ", Thousands(summary.failed), " failed");
  if (summary.not_sent > 0) absl::StrAppend(&line, "  ", Thousands(summary.not_sent), " not sent");
  return line;
}

}  // namespace attendant::client
