// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/metrics/exposition.h"
#include "tests/server/metrics/metrics_fixture.h"

namespace attendant {
namespace {

using testing::UnorderedElementsAreArray;

class ServerMetricsTest : public MetricsTest {};

TEST_F(ServerMetricsTest, HasEveryFamilyOfTheDesign) {
  metrics_.ForModel("m")->SetKind(ModelKind::kEncoder);
  metrics_.ForModel("m")->SetLoaded(
      {.dtype = "f32", .backend = "cpu", .isa = "avx2", .load_time = absl::Seconds(2)});
  std::vector<std::string> names;
  const Exposition scrape = Scrape();
  for (const auto& [name, family] : scrape.families()) names.push_back(name + " " + family.type);
  EXPECT_THAT(names, UnorderedElementsAreArray({
                         "attendant_request_duration_seconds histogram",
                         "attendant_batch_tokens histogram",
                         "attendant_batch_requests histogram",
                         "attendant_sequence_tokens histogram",
                         "attendant_requests_total counter",
                         "attendant_tokens_total counter",
                         "attendant_batches_total counter",
                         "attendant_rejected_total counter",
                         "attendant_queue_tokens gauge",
                         "attendant_queue_requests gauge",
                         "attendant_stalled_workers gauge",
                         "attendant_lost_workers gauge",
                         "attendant_model_failed gauge",
                         "attendant_ready gauge",
                         "attendant_reload_failed gauge",
                         "attendant_inflight_requests gauge",
                         "attendant_model_loaded_info gauge",
                         "attendant_model_load_seconds gauge",
                         "attendant_model_weight_bytes gauge",
                         "attendant_model_arena_bytes gauge",
                         "attendant_refused_total counter",
                         "attendant_access_log_lines_total counter",
                         "attendant_spans_total counter",
                         "attendant_span_exports_total counter",
                         "attendant_connections gauge",
                         "attendant_connections_total counter",
                         "attendant_http_connections_total counter",
                         "attendant_build_info gauge",
                         "process_cpu_seconds_total counter",
                         "process_resident_memory_bytes gauge",
                         "process_virtual_memory_bytes gauge",
                         "process_open_fds gauge",
                         "process_max_fds gauge",
                         "process_start_time_seconds gauge",
                         "process_threads gauge",
                     }));
}

TEST_F(ServerMetricsTest, CountsRequestsByGrpcCode) {
  ModelMetrics& model = *metrics_.ForModel("m");
  model.CountRequest(Method::kEncode, absl::StatusCode::kOk);
  model.CountRequest(Method::kEncode, absl::StatusCode::kOk);
  model.CountRequest(Method::kModelInfer, absl::StatusCode::kInvalidArgument);
  model.CountRequest(Method::kModelInfer, static_cast<absl::StatusCode>(99));
  model.CountRequest(Method::kModelInfer, static_cast<absl::StatusCode>(-1));
  metrics_.CountUnknownModel(Method::kEncodeStream, absl::StatusCode::kNotFound);
  const Exposition scrape = Scrape();
  const std::string name = "attendant_requests_total";
  EXPECT_EQ(scrape.Value(name, {{"model", "m"}, {"method", "encode"}, {"code", "OK"}}), 2);
  EXPECT_EQ(
      scrape.Value(name, {{"model", "m"}, {"method", "model_infer"}, {"code", "INVALID_ARGUMENT"}}),
      1);
  EXPECT_EQ(scrape.Value(name, {{"model", "m"}, {"method", "model_infer"}, {"code", "UNKNOWN"}}),
            2);
  EXPECT_EQ(scrape.Value(name, {{"model", ""}, {"method", "encode_stream"}, {"code", "NOT_FOUND"}}),
            1);
}

TEST_F(ServerMetricsTest, PhasesGoToTheirHistograms) {
  ModelMetrics& model = *metrics_.ForModel("m");
  const std::vector<std::string> phases = {"total", "tokenize", "queue", "compute", "serialize"};
  ASSERT_EQ(phases.size(), kPhases.size());
  for (size_t i = 0; i < phases.size(); ++i) {
    model.ObservePhase(Method::kEncode, static_cast<Phase>(i), absl::Milliseconds(40 * (i + 1)));
  }
  const Exposition scrape = Scrape();
  for (size_t i = 0; i < phases.size(); ++i) {
    const LabelMap labels = {{"model", "m"}, {"method", "encode"}, {"phase", phases[i]}};
    const std::string name = "attendant_request_duration_seconds";
    EXPECT_EQ(scrape.Value(name + "_count", labels), 1) << phases[i];
    EXPECT_DOUBLE_EQ(scrape.Value(name + "_sum", labels), 0.04 * static_cast<double>(i + 1));
  }
}

TEST_F(ServerMetricsTest, DurationBucketsServeP99From100UsTo60S) {
  metrics_.ForModel("m")->SetKind(ModelKind::kEncoder);
  std::set<double> bounds;
  const Exposition scrape = Scrape();
  for (const Sample& sample : scrape.families().at("attendant_request_duration_seconds").samples) {
    if (sample.labels.contains("le")) bounds.insert(std::stod(sample.labels.at("le")));
  }
  EXPECT_EQ(*bounds.begin(), 100e-6);
  EXPECT_EQ(*std::next(bounds.rbegin()), 60);
  for (auto it = bounds.begin(); std::next(it) != std::prev(bounds.end()); ++it) {
    EXPECT_LE(*std::next(it) / *it, 1.67) << *it;
    EXPECT_GE(*std::next(it) / *it, 1.33) << *it;
  }
}

TEST_F(ServerMetricsTest, ABoundBelongsToTheBucketBelowIt) {
  metrics_.ForModel("m")->ObserveSequence(128);
  EXPECT_EQ(Scrape().Value("attendant_sequence_tokens_bucket", {{"model", "m"}, {"le", "128"}}), 1);
  EXPECT_EQ(Scrape().Value("attendant_sequence_tokens_bucket", {{"model", "m"}, {"le", "64"}}), 0);
}

TEST_F(ServerMetricsTest, CountsTokensBatchesAndGauges) {
  ModelMetrics& model = *metrics_.ForModel("m");
  model.CountTokens(30, 2);
  model.CountTokens(12, 0);
  model.ObserveBatch(42, 3);
  model.AddQueue(100, 7);
  model.AddQueue(-50, -3);
  model.AddInflight(5);
  model.AddInflight(-2);
  model.AddStalledWorkers(3);
  model.AddStalledWorkers(-1);
  model.AddLostWorkers(2);
  model.AddLostWorkers(-1);
  model.SetFailed(true);
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Value("attendant_tokens_total", {{"model", "m"}, {"kind", "valid"}}), 42);
  EXPECT_EQ(scrape.Value("attendant_tokens_total", {{"model", "m"}, {"kind", "padding"}}), 2);
  EXPECT_EQ(scrape.Value("attendant_batches_total", {{"model", "m"}}), 1);
  EXPECT_EQ(scrape.Value("attendant_batch_tokens_sum", {{"model", "m"}}), 42);
  EXPECT_EQ(scrape.Value("attendant_batch_requests_sum", {{"model", "m"}}), 3);
  EXPECT_EQ(scrape.Value("attendant_queue_tokens", {{"model", "m"}}), 50);
  EXPECT_EQ(scrape.Value("attendant_queue_requests", {{"model", "m"}}), 4);
  EXPECT_EQ(scrape.Value("attendant_inflight_requests", {{"model", "m"}}), 3);
  EXPECT_EQ(scrape.Value("attendant_stalled_workers", {{"model", "m"}}), 2);
  EXPECT_EQ(scrape.Value("attendant_lost_workers", {{"model", "m"}}), 1);
  EXPECT_EQ(scrape.Value("attendant_model_failed", {{"model", "m"}}), 1);
}

TEST_F(ServerMetricsTest, TellsWhatIsLoadedAndRunning) {
  metrics_.ForModel("m")->SetLoaded({.dtype = "f32",
                                     .backend = "cpu",
                                     .isa = "avx512",
                                     .load_time = absl::Milliseconds(1500),
                                     .weight_bytes = 4096,
                                     .arena_bytes = 64});
  const Exposition scrape = Scrape();
  EXPECT_EQ(scrape.Value("attendant_model_loaded_info",
                         {{"model", "m"}, {"dtype", "f32"}, {"backend", "cpu"}, {"isa", "avx512"}}),
            1);
  EXPECT_EQ(scrape.Value("attendant_model_weight_bytes", {{"model", "m"}}), 4096);
  EXPECT_EQ(scrape.Value("attendant_model_arena_bytes", {{"model", "m"}}), 64);
  EXPECT_EQ(scrape.Value("attendant_model_load_seconds", {{"model", "m"}}), 1.5);
  const Sample& build = scrape.families().at("attendant_build_info").samples.at(0);
  EXPECT_EQ(build.labels.at("version"), "1.2.3");
  EXPECT_EQ(build.value, 1);
}

TEST_F(ServerMetricsTest, ProcessNumbersArePlausible) {
  const Exposition scrape = Scrape();
  EXPECT_GT(scrape.Value("process_resident_memory_bytes", {}), 1e6);
  EXPECT_GE(scrape.Value("process_virtual_memory_bytes", {}),
            scrape.Value("process_resident_memory_bytes", {}));
  EXPECT_GE(scrape.Value("process_open_fds", {}), 1);
  EXPECT_GE(scrape.Value("process_max_fds", {}), scrape.Value("process_open_fds", {}));
  EXPECT_GE(scrape.Value("process_threads", {}), 1);
  EXPECT_NEAR(scrape.Value("process_start_time_seconds", {}),
              absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()), 3600);
}

// /proc writes the program's name in parentheses, whatever it is.
TEST_F(ServerMetricsTest, TheProgramsNameDoesNotMatter) {
  char name[16];
  ASSERT_EQ(prctl(PR_GET_NAME, name), 0);
  const double start = Scrape().Value("process_start_time_seconds", {});
  for (const char* odd : {"a) b (c", "9 9) 9 9 9", ")"}) {
    ASSERT_EQ(prctl(PR_SET_NAME, odd), 0);
    EXPECT_EQ(Scrape().Value("process_start_time_seconds", {}), start) << odd;
  }
  prctl(PR_SET_NAME, name);
}

// The page's own descriptor, with which it counts, is no descriptor of the process.
TEST_F(ServerMetricsTest, CountsOpenFiles) {
  const auto open_files = [&] { return Scrape().Value("process_open_fds", {}); };
  const double before = open_files();
  const int one = dup(0), two = dup(0);
  ASSERT_GE(one, 0);
  EXPECT_EQ(open_files(), before + 2);
  close(one);
  close(two);
  EXPECT_EQ(open_files(), before);
  int64_t listed = 0;  // with the listing's own
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++listed;
  }
  EXPECT_EQ(before, static_cast<double>(listed - 1));
}

TEST_F(ServerMetricsTest, CountsUserAndSystemTime) {
  const auto spent = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  rusage usage{};
  do {  // until the kernel has worked for a while, too
    for (int i = 0; i < 1000; ++i) close(dup(0));
    getrusage(RUSAGE_SELF, &usage);
  } while (spent(usage.ru_stime) < 0.1);
  EXPECT_NEAR(Scrape().Value("process_cpu_seconds_total", {}),
              spent(usage.ru_utime) + spent(usage.ru_stime), 0.05);
}

TEST_F(ServerMetricsTest, TheSameModelHasTheSameMetrics) {
  EXPECT_EQ(metrics_.ForModel("m"), metrics_.ForModel("m"));
  EXPECT_NE(metrics_.ForModel("m"), metrics_.ForModel("n"));
}

TEST_F(ServerMetricsTest, SeriesExistFromTheFirstAnswerAndNeverGrow) {
  ModelMetrics& model = *metrics_.ForModel("m");
  model.SetKind(ModelKind::kEncoder);
  for (const Method method : {Method::kEncode, Method::kEncodeStream, Method::kModelInfer}) {
    for (const auto& phase : kPhases) {
      model.ObservePhase(method, phase.value, absl::Milliseconds(1));
    }
  }
  model.SetLoaded({.dtype = "f32", .backend = "cpu", .isa = "avx2", .load_time = absl::Seconds(1)});
  const auto lines = [this] {
    const std::string text = metrics_.Scrape();
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto before = lines();
  for (int code = -3; code < 30; ++code) {
    model.CountRequest(Method::kEncode, static_cast<absl::StatusCode>(code));
    model.CountRejected("reason " + std::to_string(code));
    model.ObservePhase(Method::kModelInfer, Phase::kQueue, absl::Microseconds(code));
    metrics_.CountUnknownModel(Method::kEncode, static_cast<absl::StatusCode>(code));
  }
  EXPECT_EQ(lines(), before);
}

TEST_F(ServerMetricsTest, EscapesModelNames) {
  metrics_.ForModel("a\"b\\c\nd")->CountTokens(1, 0);
  EXPECT_EQ(
      Scrape().Value("attendant_tokens_total", {{"model", "a\\\"b\\\\c\\nd"}, {"kind", "valid"}}),
      1);
}

TEST_F(ServerMetricsTest, AsksForDevicesAtEachScrape) {
  EXPECT_EQ(Scrape().families().count("attendant_device_busy_seconds_total"), 0u);
  double busy = 1.5;
  const auto source = [&busy](int device) {
    return [&busy, device] {
      return std::vector<DeviceSample>{{.device = device,
                                        .name = "H200",
                                        .memory_used_bytes = 10,
                                        .memory_total_bytes = 20,
                                        .busy_seconds = busy,
                                        .group_seconds = {{"attention", 0.25}}}};
    };
  };
  metrics_.AddDeviceSource("a", source(0));
  metrics_.AddDeviceSource("b", source(0));
  metrics_.AddDeviceSource("b", source(1));
  metrics_.AddDeviceSource("b", source(0));  // another version
  int asked = 0;
  metrics_.AddDeviceSource("gone", [&asked] {
    ++asked;
    return std::vector<DeviceSample>();
  });
  busy = 2.5;
  const Exposition scrape = Scrape();
  const auto value = [&scrape](const char* family, const LabelMap& labels) {
    return scrape.Value(family, labels);
  };
  EXPECT_EQ(value("attendant_device_info", {{"device", "1"}, {"name", "H200"}}), 1);
  EXPECT_EQ(value("attendant_device_memory_bytes", {{"device", "0"}, {"kind", "used"}}), 10);
  EXPECT_EQ(value("attendant_device_memory_bytes", {{"device", "0"}, {"kind", "total"}}), 20);
  EXPECT_EQ(value("attendant_device_busy_seconds_total", {{"model", "a"}, {"device", "0"}}), 2.5);
  EXPECT_EQ(value("attendant_device_busy_seconds_total", {{"model", "b"}, {"device", "0"}}), 5);
  EXPECT_EQ(value("attendant_device_kernel_seconds_total",
                  {{"model", "a"}, {"device", "0"}, {"group", "attention"}}),
            0.25);
  EXPECT_EQ(value("attendant_device_kernel_seconds_total",
                  {{"model", "b"}, {"device", "0"}, {"group", "attention"}}),
            0.5);
  Scrape();
  EXPECT_EQ(asked, 1) << "a source without devices is over";
}

TEST_F(ServerMetricsTest, CountsFromManyThreadsWhileScraped) {
  ModelMetrics& model = *metrics_.ForModel("m");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&model] {
      for (int j = 0; j < 2000; ++j) {
        model.CountRequest(Method::kEncode, absl::StatusCode::kOk);
        model.ObservePhase(Method::kEncode, Phase::kTotal, absl::Microseconds(j));
      }
    });
  }
  for (int i = 0; i < 5; ++i) Scrape();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Scrape().Value("attendant_requests_total",
                           {{"model", "m"}, {"method", "encode"}, {"code", "OK"}}),
            8000);
}

TEST(ExpositionTest, IsStrict) {
  const std::string head = "# HELP a_total help\n# TYPE a_total counter\n";
  EXPECT_TRUE(Exposition::Parse(head + "a_total{x=\"y\"} 1\n").ok());
  for (const std::string bad :
       {"a_total 1", "a_total x\n", "b_total 1\n", "a_total -1\n", "a_total 1\na_total 2\n",
        "a_total{x=\"y} 1\n", "a_total{x=\"1\",x=\"2\"} 1\n"}) {
    EXPECT_FALSE(Exposition::Parse(head + bad).ok()) << bad;
  }
  const std::string histogram = "# HELP h help\n# TYPE h histogram\n";
  EXPECT_TRUE(Exposition::Parse(histogram + "h_count 2\nh_sum 3\nh_bucket{le=\"1\"} 1\n"
                                            "h_bucket{le=\"+Inf\"} 2\n")
                  .ok());
  EXPECT_FALSE(Exposition::Parse(histogram + "h_count 2\nh_sum 3\nh_bucket{le=\"1\"} 3\n"
                                             "h_bucket{le=\"+Inf\"} 2\n")
                   .ok());
  EXPECT_FALSE(Exposition::Parse(histogram + "h_count 2\nh_sum 3\nh_bucket{le=\"1\"} 1\n").ok());
}

}  // namespace
}  // namespace attendant
