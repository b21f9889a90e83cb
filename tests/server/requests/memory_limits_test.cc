// SPDX-License-Identifier: Apache-2.0
// What clients send and what they do not read is bounded, all together.
#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/rpc/encoder_service.h"
#include "server/rpc/scan/wire_scan.h"
#include "tests/server/in_process_server.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// [CLS] hello world [SEP], its sequence and its answer.
constexpr int64_t kHelloStateBytes = 4 * kTinyConfig.hidden * 4 + kSequenceBytes + kAnswerBytes;

v1::EncodeRequest StatesRequest() {
  v1::EncodeRequest request = HelloRequest();
  request.mutable_outputs()->set_last_hidden_state(true);
  return request;
}

// As large an answer, and nothing to compute for it.
v1::EncodeRequest MaskedRequest() {
  v1::EncodeRequest request = StatesRequest();
  v1::TokenIds& ids = *request.mutable_sequences()->mutable_sequences(0)->mutable_ids();
  for (int i = 0; i < 4; ++i) {
    ids.add_token_ids(kHello);
    ids.add_attention_mask(false);
  }
  return request;
}

std::future<grpc::Status> CallLater(InProcessServer& server, const v1::EncodeRequest& request) {
  return std::async(std::launch::async, [&server, request] {
    v1::EncodeResponse response;
    return CallEncode(server.encoder(), request, response);
  });
}

// Until what an answered call held has come back, which its client cannot see.
void AwaitOk(InProcessServer& server, const v1::EncodeRequest& request) {
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  v1::EncodeResponse response;
  grpc::Status status;
  do {
    status = CallEncode(server.encoder(), request, response);
  } while (!status.ok() && absl::Now() < limit);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

void ExpectRefused(InProcessServer& server, const v1::EncodeRequest& request,
                   const std::string& message) {
  grpc::ClientContext context;
  v1::EncodeResponse response;
  const grpc::Status status = server.encoder().Encode(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr(message));
  EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
}

v1::Error StreamError(InProcessServer& server, const v1::EncodeRequest& request) {
  grpc::ClientContext context;
  const auto stream = server.encoder().EncodeStream(&context);
  EXPECT_TRUE(stream->Write(request));
  v1::EncodeStreamResponse answer;
  EXPECT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.error().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  return answer.error();
}

TEST(MemoryLimitsTest, AnswersToComeAreBounded) {
  InProcessServer::Options options;
  options.flags.memory.max_pending_response_bytes = kHelloStateBytes + 1;
  InProcessServer server(options);
  server.AwaitReady();
  server.run_gate().Close();
  auto first = CallLater(server, StatesRequest());
  server.run_gate().AwaitWaiting(1);
  const std::string message =
      absl::StrCat("hold ", kHelloStateBytes, " bytes and this one takes ", kHelloStateBytes,
                   ", the limit is ", kHelloStateBytes + 1);
  ExpectRefused(server, StatesRequest(), message);
  ExpectRefused(server, MaskedRequest(), message);
  EXPECT_EQ(server.Metric(R"(attendant_rejected_total{model="tiny",reason="memory"})"), 2);
  EXPECT_GT(StreamError(server, StatesRequest()).retry_after_ms(), 0);
  server.run_gate().Open();
  EXPECT_TRUE(first.get().ok());
  AwaitOk(server, MaskedRequest());
  AwaitOk(server, StatesRequest());
}

TEST(MemoryLimitsTest, RequestsInWorkAreBounded) {
  v1::EncodeRequest request = HelloRequest();
  request.mutable_sequences()->mutable_sequences(0)->set_text(
      absl::StrCat(std::string(40000, ' '), "hello"));
  InProcessServer::Options options;
  options.flags.memory.max_pending_request_bytes =
      2 * (static_cast<int64_t>(request.ByteSizeLong()) + kRequestBytes);
  InProcessServer server(options);
  server.AwaitReady();
  server.run_gate().Close();
  auto first = CallLater(server, request);
  server.run_gate().AwaitWaiting(1);
  ExpectRefused(server, request, "--max_pending_request_bytes");
  server.run_gate().Open();
  EXPECT_TRUE(first.get().ok());
  AwaitOk(server, request);
}

// The bytes, what gRPC and the parser make of them, and the sequences.
TEST(MemoryLimitsTest, ARequestIsAccountedForToTheByte) {
  v1::EncodeRequest request = HelloRequest();
  for (int i = 0; i < 9; ++i) request.mutable_sequences()->add_sequences()->set_text("hello");
  const std::string bytes = request.SerializeAsString();
  const WireSchema schema(*v1::EncodeRequest::descriptor(), EncodeRules({}));
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  WireSummary summary;
  ASSERT_TRUE(ScanWire(schema, static_cast<int64_t>(bytes.size()), stream, summary).ok());
  const int64_t held = kRequestBytes + static_cast<int64_t>(bytes.size()) + summary.memory_bytes +
                       10 * kSequenceBytes;
  for (const int64_t missing : {0, 1}) {
    InProcessServer::Options options;
    options.flags.memory.max_pending_request_bytes = held - missing;
    InProcessServer server(options);
    server.AwaitReady();
    if (missing == 0) {
      AwaitOk(server, request);
    } else {
      grpc::ClientContext context;
      v1::EncodeResponse response;
      const grpc::Status status = server.encoder().Encode(&context, request, &response);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "it can never succeed";
      EXPECT_THAT(status.error_message(), HasSubstr(absl::StrCat("this one takes ", held)));
    }
  }
}

TEST(MemoryLimitsTest, AStreamIsNotReadWhileItsAnswersAreTooManyBytes) {
  constexpr int kWrites = 20;
  InProcessServer::Options options;
  options.flags.max_request_bytes = 8192;  // a stream's limit is twice that
  InProcessServer server(options);
  server.AwaitReady();
  server.run_gate().Close();
  const auto bytes = static_cast<int64_t>(StatesRequest().ByteSizeLong()) + kHelloStateBytes;
  const int64_t expected = (2 * options.flags.max_request_bytes + bytes - 1) / bytes;
  ASSERT_LT(expected, kWrites);
  grpc::ClientContext context;
  const auto stream = server.encoder().EncodeStream(&context);
  std::thread writer([&stream] {
    for (int i = 0; i < kWrites; ++i) stream->Write(StatesRequest());
    stream->WritesDone();
  });
  const std::string inflight = R"(attendant_inflight_requests{model="tiny"})";
  server.AwaitMetric(inflight, static_cast<double>(expected));
  // A later call comes after what the stream could still have sent.
  auto later = CallLater(server, HelloRequest());
  server.AwaitMetric(inflight, static_cast<double>(expected + 1));
  server.run_gate().Open();
  int answers = 0;
  v1::EncodeStreamResponse answer;
  while (stream->Read(&answer)) answers += answer.has_response() ? 1 : 0;
  EXPECT_EQ(answers, kWrites);
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(later.get().ok());
}

}  // namespace
}  // namespace attendant
