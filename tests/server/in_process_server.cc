// SPDX-License-Identifier: Apache-2.0
#include "tests/server/in_process_server.h"

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "kernels/core/check.h"
#include "server/models/model_loader.h"
#include "tests/server/http/http_client.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

ModelLoader GatedLoader(const Backend& backend, Gate& load_gate, const ServerFlags& flags) {
  const BackendDefaults defaults = backend.defaults();
  const auto or_default = [](int64_t value, int64_t otherwise) {
    return value > 0 ? value : otherwise;
  };
  const ModelOptions options{
      .dtype = "f32",
      .batcher = {
          .max_batch_tokens = or_default(flags.max_batch_tokens, defaults.batch_tokens),
          .max_batch_sequences = or_default(flags.max_batch_sequences, defaults.batch_sequences),
          .max_queued_tokens = flags.max_queued_tokens,
          .max_queued_requests = flags.max_queued_requests,
          .max_queue_delay = absl::ZeroDuration(),
          .max_priority = flags.max_priority,
          .max_priority_wait = absl::Milliseconds(flags.max_priority_wait_ms),
          .stall_timeout = absl::Seconds(flags.stall_timeout_s)}};
  return [&backend, &load_gate, options](const ModelSource& source, ServerMetrics& metrics,
                                         const Executor& executor) {
    load_gate.Pass();
    return LoadModel(source, backend, options, metrics, executor);
  };
}

// Of one connection; 0 where there is none.
size_t MostOpenCalls(int http_port) {
  const auto page = nlohmann::json::parse(HttpGet(http_port, "/connections").body);
  size_t most = 0;
  for (const auto& connection : page["connections"]) {
    most = std::max(most, connection["open_calls"].get<size_t>());
  }
  return most;
}

}  // namespace

InProcessServer::InProcessServer(const Options& options) : backend_(MakeGatedBackend(run_gate_)) {
  options.write_model(directory_ / "tiny");
  if (!options.load_gate_open) load_gate_.Close();
  ServerFlags flags = options.flags;
  flags.listen = flags.http_listen = "127.0.0.1:0";
  ModelSources sources{.fixed = options.models};  // loaded one after the other, "tiny" behind them
  sources.fixed.push_back({"tiny", directory_ / "tiny"});
  for (const std::string& name : options.broken_models) {
    sources.fixed.push_back({name, directory_ / name});
  }
  absl::StatusOr<std::unique_ptr<App>> app =
      App::Start(flags, sources, GatedLoader(*backend_, load_gate_, flags), options.goaway_after);
  ATTENDANT_CHECK(app.ok());
  app_ = *std::move(app);
  run_ = std::thread([this] { run_status_ = app_->Run(); });
  channel_ = NewChannel();
  encoder_ = v1::Encoder::NewStub(channel_);
  health_ = grpc::health::v1::Health::NewStub(channel_);
}

InProcessServer::Options InProcessServer::WithDistinctLimits() {
  Options options;
  options.flags.max_batch_tokens = 2000;
  options.flags.max_batch_sequences = 70;
  options.flags.max_queued_requests = 300;
  options.flags.encode.max_request_sequences = 60;
  return options;
}

InProcessServer::~InProcessServer() {
  load_gate_.Open();
  run_gate_.Open();
  RequestStop();
  if (run_.joinable()) run_.join();
}

std::shared_ptr<grpc::Channel> InProcessServer::NewChannelOfSlowReader() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return NewChannel(arguments);
}

std::shared_ptr<grpc::Channel> InProcessServer::NewChannel(grpc::ChannelArguments arguments) const {
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", app_->grpc_port()),
                                   grpc::InsecureChannelCredentials(), arguments);
}

void InProcessServer::AwaitReady() {
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service("tiny");
  const auto watch = health_->Watch(&context, request);
  grpc::health::v1::HealthCheckResponse response;
  while (watch->Read(&response)) {
    if (response.status() == grpc::health::v1::HealthCheckResponse::SERVING) break;
  }
  context.TryCancel();
}

absl::Status InProcessServer::AwaitStopped() {
  run_.join();
  return run_status_;
}

v1::EncodeResponse InProcessServer::Encode(const v1::EncodeRequest& request) {
  v1::EncodeResponse response;
  const grpc::Status status = CallEncode(*encoder_, request, response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

std::string InProcessServer::Refusal(const v1::EncodeRequest& request) {
  v1::EncodeResponse response;
  const grpc::Status status = CallEncode(*encoder_, request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  return status.error_message();
}

double InProcessServer::Metric(const std::string& series) const {
  for (absl::string_view line : absl::StrSplit(Scrape(), '\n')) {
    double value = 0;
    if (absl::StartsWith(line, absl::StrCat(series, " ")) &&
        absl::SimpleAtod(line.substr(series.size() + 1), &value)) {
      return value;
    }
  }
  return -1;
}

void InProcessServer::AwaitMetric(const std::string& series, double value) const {
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  while (Metric(series) != value) {
    ASSERT_LT(absl::Now(), limit) << series << " stays at " << Metric(series);
    std::this_thread::yield();
  }
}

void InProcessServer::CallUntilCounted(const std::string& series,
                                       const std::function<void()>& call) const {
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  while (Metric(series) < 1) {
    ASSERT_LT(absl::Now(), limit) << series << " stays at " << Metric(series);
    call();
  }
}

void InProcessServer::AwaitOpenCalls(size_t calls) const {
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  while (MostOpenCalls(http_port()) != calls) ASSERT_LT(absl::Now(), limit);
}

v1::EncodeRequest HelloRequest() {
  v1::EncodeRequest request;
  request.set_model("tiny");
  request.set_id("hello");
  request.mutable_sequences()->add_sequences()->set_text("hello world");
  return request;
}

v1::Sequence& AddIds(v1::EncodeRequest& request, const std::vector<int32_t>& ids,
                     const std::vector<bool>& mask) {
  v1::Sequence& sequence = *request.mutable_sequences()->add_sequences();
  sequence.mutable_ids()->mutable_token_ids()->Add(ids.begin(), ids.end());
  sequence.mutable_ids()->mutable_attention_mask()->Add(mask.begin(), mask.end());
  return sequence;
}

grpc::Status CallEncode(v1::Encoder::Stub& stub, const v1::EncodeRequest& request,
                        v1::EncodeResponse& response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  return stub.Encode(&context, request, &response);
}

grpc::Status CallHello(v1::Encoder::Stub& stub) {
  v1::EncodeResponse response;
  return CallEncode(stub, HelloRequest(), response);
}

std::vector<float> Floats(const v1::Tensor& tensor) {
  EXPECT_EQ(tensor.dtype(), v1::DTYPE_F32);
  std::vector<float> values(tensor.data().size() / sizeof(float));
  std::memcpy(values.data(), tensor.data().data(), values.size() * sizeof(float));
  return values;
}

}  // namespace attendant
