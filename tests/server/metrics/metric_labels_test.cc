// SPDX-License-Identifier: Apache-2.0
// The labels with a fixed set of values.
#include "server/metrics/metric_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/batcher.h"
#include "server/metrics/server_metrics.h"
#include "server/net/connection_acceptor.h"
#include "server/requests/memory/memory_budgets.h"
#include "tests/server/metrics/exposition.h"
#include "tests/server/metrics/metrics_fixture.h"

namespace attendant {
namespace {

using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;

class MetricLabelsTest : public MetricsTest {};

std::set<std::string> ValuesOf(const Exposition& scrape, const std::string& family,
                               const std::string& label) {
  std::set<std::string> values;
  for (const Sample& sample : scrape.families().at(family).samples) {
    values.insert(sample.labels.at(label));
  }
  return values;
}

TEST_F(MetricLabelsTest, CountsRefusalsByReason) {
  const std::vector<std::string> reasons = {
      "message",       "request_memory",   "response_memory",   "connection_memory",
      "slow_reader",   "unauthenticated",  "permission_denied", "http_requests",
      "stream_memory", "connection_calls", "unknown_method",    "call_memory"};
  ASSERT_EQ(reasons.size(), kRefusals.size());
  for (size_t i = 0; i < reasons.size(); ++i) {
    for (size_t count = 0; count <= i; ++count) metrics_.CountRefused(static_cast<Refusal>(i));
  }
  const Exposition scrape = Scrape();
  for (size_t i = 0; i < reasons.size(); ++i) {
    EXPECT_EQ(scrape.Value("attendant_refused_total", {{"reason", reasons[i]}}),
              static_cast<double>(i + 1))
        << reasons[i];
  }
}

TEST_F(MetricLabelsTest, KnowsEveryRejectReason) {
  ModelMetrics& model = *metrics_.ForModel("m");
  std::vector<std::string> reasons = {std::string(MemoryBudgets::kRejected), "other"};
  for (int i = 0; i < static_cast<int>(RejectReason::kEnd); ++i) {
    reasons.emplace_back(RejectReasonName(static_cast<RejectReason>(i)));
  }
  EXPECT_THAT(ValuesOf(Scrape(), "attendant_rejected_total", "reason"),
              UnorderedElementsAreArray(reasons));
  for (const std::string& reason : reasons) {
    model.CountRejected(reason == "other" ? "what a client sent" : reason);
    EXPECT_EQ(Scrape().Value("attendant_rejected_total", {{"model", "m"}, {"reason", reason}}), 1);
  }
}

TEST_F(MetricLabelsTest, KnowsEveryConnectionResult) {
  std::vector<std::string> results = {"accepted"};
  for (int i = 0; i < static_cast<int>(ConnectionObserver::Refusal::kEnd); ++i) {
    results.emplace_back(RefusalName(static_cast<ConnectionObserver::Refusal>(i)));
  }
  const auto known = [this] { return ValuesOf(Scrape(), "attendant_connections_total", "result"); };
  EXPECT_THAT(known(), UnorderedElementsAreArray(results));
  for (const std::string& result : results) metrics_.CountConnection(result);
  EXPECT_THAT(known(), UnorderedElementsAreArray(results));
}

TEST_F(MetricLabelsTest, CountsHttpConnectionsByTheirEnd) {
  const std::vector<std::string> ends = {"normal",       "replaced",    "idle",      "slow_head",
                                         "slow_body",    "slow_reader", "handshake", "malformed",
                                         "foreign_page", "system"};
  ASSERT_EQ(ends.size(), kHttpEnds.size());
  for (size_t i = 0; i < ends.size(); ++i) {
    for (size_t count = 0; count <= i; ++count)
      metrics_.CountHttpConnection(static_cast<HttpEnd>(i));
  }
  const Exposition scrape = Scrape();
  for (size_t i = 0; i < ends.size(); ++i) {
    EXPECT_EQ(scrape.Value("attendant_http_connections_total", {{"result", ends[i]}}),
              static_cast<double>(i + 1))
        << ends[i];
  }
}

TEST_F(MetricLabelsTest, AModelHasSeriesOfItsMethodsOnly) {
  ModelMetrics& encoder = *metrics_.ForModel("encoder");
  encoder.SetKind(ModelKind::kEncoder);
  metrics_.ForModel("module")->SetKind(ModelKind::kAttention);
  encoder.ObservePhase(Method::kAttend, Phase::kTotal, absl::Seconds(1));
  const auto methods = [](const Exposition& scrape, const std::string& model) {
    std::set<std::string> found;
    for (const auto& [name, family] : scrape.families()) {
      for (const Sample& sample : family.samples) {
        if (!sample.labels.contains("method") || sample.labels.at("model") != model) continue;
        found.insert(sample.labels.at("method"));
      }
    }
    return found;
  };
  EXPECT_THAT(methods(Scrape(), "encoder"),
              UnorderedElementsAre("encode", "encode_stream", "model_infer"));
  EXPECT_THAT(methods(Scrape(), "module"), UnorderedElementsAre("attend", "attend_stream"));
  encoder.CountRequest(Method::kAttend, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Scrape().Value("attendant_requests_total",
                     {{"model", "encoder"}, {"method", "attend"}, {"code", "INVALID_ARGUMENT"}}),
      1);
}

TEST_F(MetricLabelsTest, EveryMethodIsTimedForItsKindOfModel) {
  metrics_.ForModel("encoder")->SetKind(ModelKind::kEncoder);
  metrics_.ForModel("attention")->SetKind(ModelKind::kAttention);
  std::set<std::string> names;
  for (const MethodRow& method : kMethods) {
    names.insert(method.name);
    const bool encodes = method.model == ModelKind::kEncoder;
    for (const char* model : {"encoder", "attention"}) {
      metrics_.ForModel(model)->ObservePhase(method.value, Phase::kQueue, absl::Seconds(1));
    }
    const Exposition scrape = Scrape();
    const auto timed = [&](const char* model) {
      return std::ranges::any_of(scrape.families().at("attendant_request_duration_seconds").samples,
                                 [&](const Sample& sample) {
                                   return sample.labels.at("model") == model &&
                                          sample.labels.at("phase") == "queue" &&
                                          sample.labels.at("method") == method.name;
                                 });
    };
    EXPECT_EQ(timed("encoder"), encodes) << method.name;
    EXPECT_EQ(timed("attention"), !encodes) << method.name;
  }
  EXPECT_EQ(names.size(), kMethods.size()) << "two methods have one name";
}

}  // namespace
}  // namespace attendant
