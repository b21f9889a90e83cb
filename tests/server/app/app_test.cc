// SPDX-License-Identifier: Apache-2.0
#include "server/app/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "server/app/model_sources.h"
#include "tests/server/http/http_client.h"
#include "tests/server/in_process_server.h"

namespace attendant {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;
using ::testing::Not;

HealthCheckResponse::ServingStatus Check(InProcessServer& server, const std::string& service) {
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service(service);
  HealthCheckResponse response;
  EXPECT_TRUE(server.health().Check(&context, request, &response).ok());
  return response.status();
}

void AwaitHealth(InProcessServer& server, const std::string& service,
                 HealthCheckResponse::ServingStatus status) {
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  while (Check(server, service) != status) ASSERT_LT(absl::Now(), limit) << service;
}

void AwaitState(InProcessServer& server, int model, v1::ModelState state) {
  v1::ListModelsResponse response;
  do {
    grpc::ClientContext context;
    response.Clear();
    ASSERT_TRUE(server.encoder().ListModels(&context, {}, &response).ok());
  } while (response.models(model).state() != state);
}

// Health turns before models do.
void AwaitDraining(InProcessServer& server) { AwaitState(server, 0, v1::MODEL_STATE_DRAINING); }

// One Watch call, status by status.
class Watch {
 public:
  Watch(InProcessServer& server, const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    reader_ = server.health().Watch(&context_, request);
  }
  ~Watch() { context_.TryCancel(); }

  HealthCheckResponse::ServingStatus Next() {
    HealthCheckResponse response;
    EXPECT_TRUE(reader_->Read(&response));
    return response.status();
  }
  void Await(HealthCheckResponse::ServingStatus status) {
    while (Next() != status) {
    }
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader_;
};

TEST(AppTest, AnswersWhileLoading) {
  InProcessServer::Options options;
  options.load_gate_open = false;
  InProcessServer server(options);
  EXPECT_EQ(Check(server, ""), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Check(server, "tiny"), HealthCheckResponse::NOT_SERVING);
  const grpc::Status status = CallHello(server.encoder());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("'tiny' is loading"));
  Watch watch(server, "");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(server.Metric("attendant_ready"), 0);
  server.load_gate().Open();
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  server.AwaitMetric("attendant_ready", 1);
  EXPECT_EQ(Check(server, "tiny"), HealthCheckResponse::SERVING);
  EXPECT_TRUE(CallHello(server.encoder()).ok());
}

TEST(AppTest, HealthOfAnUnknownServiceIsNotFound) {
  InProcessServer server;
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service("nobody");
  HealthCheckResponse response;
  EXPECT_EQ(server.health().Check(&context, request, &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
  Watch watch(server, "nobody");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
}

// A batch that does not end turns health, readiness and the metric, and ending turns them back.
TEST(AppTest, AStalledModelIsNotServingUntilItsBatchEnds) {
  InProcessServer::Options options;
  options.flags.stall_timeout_s = 1;
  InProcessServer server(options);
  server.AwaitReady();
  Watch tiny(server, "tiny");
  Watch all(server, "");
  tiny.Await(HealthCheckResponse::SERVING);
  all.Await(HealthCheckResponse::SERVING);
  EXPECT_EQ(server.Metric("attendant_stalled_workers{model=\"tiny\"}"), 0);
  server.run_gate().Close();
  std::thread caller([&server] { EXPECT_TRUE(CallHello(server.encoder()).ok()); });
  EXPECT_EQ(tiny.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(all.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(server.Metric("attendant_stalled_workers{model=\"tiny\"}"), 1);
  server.run_gate().Open();
  tiny.Await(HealthCheckResponse::SERVING);
  all.Await(HealthCheckResponse::SERVING);
  EXPECT_EQ(server.Metric("attendant_stalled_workers{model=\"tiny\"}"), 0);
  caller.join();
}

TEST(AppTest, DrainUnderLoadAnswersEverythingAdmitted) {
  constexpr int kRequests = 40;
  InProcessServer server;
  server.AwaitReady();
  Watch watch(server, "tiny");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  server.run_gate().Close();
  std::vector<std::future<grpc::Status>> calls;
  const auto call = [&server] { return CallHello(server.encoder()); };
  calls.push_back(std::async(std::launch::async, call));
  server.run_gate().AwaitWaiting(1);
  while (calls.size() < kRequests) calls.push_back(std::async(std::launch::async, call));
  server.AwaitMetric(R"(attendant_queue_requests{model="tiny"})", kRequests - 1);
  server.RequestStop();
  EXPECT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Check(server, "tiny"), HealthCheckResponse::NOT_SERVING);
  AwaitDraining(server);
  EXPECT_EQ(server.Metric("attendant_ready"), 0);
  EXPECT_EQ(CallHello(server.encoder()).error_code(), grpc::StatusCode::UNAVAILABLE);
  server.run_gate().Open();
  for (std::future<grpc::Status>& answer : calls) EXPECT_TRUE(answer.get().ok());
  EXPECT_TRUE(server.AwaitStopped().ok());
}

TEST(AppTest, DrainEndsAtItsTimeout) {
  InProcessServer::Options options;
  options.flags.drain_timeout_s = 0;
  InProcessServer server(options);
  server.AwaitReady();
  server.run_gate().Close();
  auto call = std::async(std::launch::async, [&server] { return CallHello(server.encoder()); });
  server.run_gate().AwaitWaiting(1);
  server.RequestStop();
  EXPECT_EQ(call.get().error_code(), grpc::StatusCode::UNAVAILABLE);
  server.run_gate().Open();
  EXPECT_TRUE(server.AwaitStopped().ok());
}

TEST(AppTest, AnIdleModelHasFewSeries) {
  constexpr int kMaxSeries = 600;
  InProcessServer server;
  server.AwaitReady();
  const std::string page = server.Scrape();
  int series = 0;
  for (absl::string_view line : absl::StrSplit(page, '\n', absl::SkipEmpty())) {
    if (!absl::StartsWith(line, "#")) ++series;
  }
  EXPECT_LE(series, kMaxSeries);
  EXPECT_THAT(page, HasSubstr(R"(method="encode",model="tiny")"));
  EXPECT_THAT(page, Not(HasSubstr(R"(method="attend",model="tiny")")));
  EXPECT_THAT(page, Not(HasSubstr(R"(method="encode",model="attention")")));
}

TEST(AppTest, StopsWhileLoading) {
  InProcessServer::Options options;
  options.load_gate_open = false;
  InProcessServer server(options);
  server.load_gate().AwaitWaiting(1);
  server.RequestStop();
  server.load_gate().Open();
  EXPECT_TRUE(server.AwaitStopped().ok());
}

TEST(AppTest, ServesBesideAModelThatFailed) {
  InProcessServer::Options options;
  options.broken_models = {"broken"};
  InProcessServer server(options);
  server.AwaitReady();
  EXPECT_TRUE(CallHello(server.encoder()).ok());
  EXPECT_EQ(Check(server, "broken"), HealthCheckResponse::NOT_SERVING);
  AwaitHealth(server, "", HealthCheckResponse::SERVING);
}

TEST(AppTest, IsNotReadyBesideAModelThatFailedWhenStrict) {
  InProcessServer::Options options;
  options.broken_models = {"broken"};
  options.flags.readiness = Readiness::kEveryModel;
  InProcessServer server(options);
  server.AwaitReady();
  AwaitState(server, 1, v1::MODEL_STATE_FAILED);
  EXPECT_TRUE(CallHello(server.encoder()).ok());
  EXPECT_EQ(Check(server, ""), HealthCheckResponse::NOT_SERVING);
}

// Kubernetes sends calls elsewhere, and does not go on with a rollout.
TEST(AppTest, IsNotReadyOnceItsOnlyPolledModelIsLost) {
  InProcessServer::Options options;
  options.flags.model_control = ModelControl::kPoll;
  InProcessServer server(options);
  server.AwaitReady();
  AwaitHealth(server, "", HealthCheckResponse::SERVING);
  server.run_gate().Lose();
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  while (Check(server, "tiny") == HealthCheckResponse::SERVING) {  // until each worker has found it
    ASSERT_LT(absl::Now(), limit);
    EXPECT_FALSE(CallHello(server.encoder()).ok());
  }
  AwaitHealth(server, "", HealthCheckResponse::NOT_SERVING);
  for (const char* path : {"/healthz", "/v2/health/live"}) {  // so that it is started anew
    EXPECT_EQ(HttpGet(server.http_port(), path).code, 503) << path;
  }
}

// Its clients load the models. With polling a repository without a model is a fault.
TEST(AppTest, WithoutAnyModelOnlyExplicitControlIsReady) {
  for (const auto& [control, ready] : {std::pair(ModelControl::kExplicit, "attendant_ready 1\n"),
                                       std::pair(ModelControl::kPoll, "attendant_ready 0\n")}) {
    ServerFlags flags;
    flags.listen = flags.http_listen = "127.0.0.1:0";
    flags.model_control = control;
    const absl::StatusOr<std::unique_ptr<App>> app = App::Start(flags, {});
    ASSERT_TRUE(app.ok()) << app.status();
    EXPECT_THAT((*app)->metrics().Scrape(), HasSubstr(ready));
  }
}

TEST(AppTest, EndsWhenNoModelCanBeLoaded) {
  ServerFlags flags;
  flags.listen = flags.http_listen = "127.0.0.1:0";
  absl::StatusOr<std::unique_ptr<App>> app =
      App::Start(flags, {.fixed = {{"gone", "/nonexistent/gone"}}});
  ASSERT_TRUE(app.ok());
  const absl::Status status = (*app)->Run();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/gone"));
}

TEST(AppTest, PollsFromWhatTheRepositoryHeldWhenTheFlagsWereRead) {
  TempDirectory directory;
  const auto add = [&directory](const std::string& name) {
    std::filesystem::create_directories(directory / name);
    WriteFile((directory / name) + "/config.json", "{}");
  };
  add("a");
  add("m");
  ServerFlags flags;
  flags.listen = flags.http_listen = "127.0.0.1:0";
  flags.model_repository = directory.path();
  flags.model_control = ModelControl::kPoll;
  flags.repository_poll_s = 1;
  const absl::StatusOr<ModelSources> sources = CollectModels(flags);
  ASSERT_TRUE(sources.ok()) << sources.status();
  WriteFile(directory / "m/note", "x");

  absl::Mutex mutex;
  std::map<std::string, int> loads;
  const ModelLoader loader = [&](const ModelSource& source, ServerMetrics&, const Executor&) {
    absl::MutexLock lock(&mutex);
    ++loads[source.directory];
    return absl::InternalError("only counted");
  };
  const absl::StatusOr<std::unique_ptr<App>> app = App::Start(flags, *sources, loader);
  ASSERT_TRUE(app.ok()) << app.status();
  const auto again = [&] { return loads[directory / "m"] == 2; };
  absl::MutexLock lock(&mutex);
  EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&again), absl::Seconds(60)));
  EXPECT_EQ(loads[directory / "a"], 1) << "it is as it was";
}

TEST(AppTest, AnAddressInUseIsAnError) {
  ServerFlags flags;
  flags.listen = flags.http_listen = "127.0.0.1:0";
  absl::StatusOr<std::unique_ptr<App>> first = App::Start(flags, {});
  ASSERT_TRUE(first.ok());
  flags.listen = absl::StrCat("127.0.0.1:", (*first)->grpc_port());
  const absl::Status second = App::Start(flags, {}).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.message()), HasSubstr("--listen"));
}

}  // namespace
}  // namespace attendant
