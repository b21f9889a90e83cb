// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/requests/memory/memory_budgets.h"
#include "tests/server/in_process_server.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using ClientStream = grpc::ClientReaderWriter<v1::EncodeRequest, v1::EncodeStreamResponse>;

v1::EncodeRequest Numbered(int number) {
  v1::EncodeRequest request = HelloRequest();
  request.set_id(absl::StrCat(number));
  return request;
}

// Everything that comes until the stream ends, by id.
std::map<std::string, v1::EncodeStreamResponse> ReadAll(ClientStream& stream) {
  std::map<std::string, v1::EncodeStreamResponse> answers;
  v1::EncodeStreamResponse answer;
  while (stream.Read(&answer)) {
    EXPECT_EQ(answers.count(answer.id()), 0u) << answer.id() << " was answered twice";
    answers[answer.id()] = answer;
  }
  return answers;
}

TEST(EncoderStreamTest, AnswersGoodAndBadRequestsEachOnce) {
  InProcessServer server;
  server.AwaitReady();
  const v1::EncodeResponse alone = server.Encode(HelloRequest());

  grpc::ClientContext context;
  const auto stream = server.encoder().EncodeStream(&context);
  for (int i = 0; i < 300; ++i) {
    v1::EncodeRequest request = Numbered(i);
    if (i % 3 == 1) request.set_model("nobody");
    if (i % 3 == 2) {
      request.mutable_sequences()->mutable_sequences(0)->mutable_ids()->add_token_ids(-1);
    }
    ASSERT_TRUE(stream->Write(request));
  }
  stream->WritesDone();
  const auto answers = ReadAll(*stream);
  EXPECT_TRUE(stream->Finish().ok());
  ASSERT_EQ(answers.size(), 300u);
  for (int i = 0; i < 300; ++i) {
    const v1::EncodeStreamResponse& answer = answers.at(absl::StrCat(i));
    if (i % 3 == 0) {
      EXPECT_EQ(answer.response().pooled().data(), alone.pooled().data());
    } else {
      EXPECT_EQ(answer.error().code(),
                i % 3 == 1 ? grpc::StatusCode::NOT_FOUND : grpc::StatusCode::INVALID_ARGUMENT);
      EXPECT_FALSE(answer.error().message().empty());
    }
  }
}

TEST(EncoderStreamTest, ReadsNoMoreThanItsLimit) {
  InProcessServer::Options options;
  options.flags.streams.max_requests = 4;
  InProcessServer server(options);
  server.AwaitReady();
  server.run_gate().Close();
  grpc::ClientContext context;
  const auto stream = server.encoder().EncodeStream(&context);
  std::thread writer([&stream] {
    for (int i = 0; i < 20; ++i) stream->Write(Numbered(i));
    stream->WritesDone();
  });
  const std::string inflight = R"(attendant_inflight_requests{model="tiny"})";
  server.AwaitMetric(inflight, 4);
  // Another stream's requests come after what this one could still have sent.
  grpc::ClientContext other_context;
  const auto other = server.encoder().EncodeStream(&other_context);
  for (int i = 0; i < 4; ++i) other->Write(Numbered(i));
  other->WritesDone();
  server.AwaitMetric(inflight, 8);
  EXPECT_EQ(server.Metric(inflight), 8);

  server.run_gate().Open();
  EXPECT_EQ(ReadAll(*other).size(), 4u);
  EXPECT_EQ(ReadAll(*stream).size(), 20u);
  writer.join();
  EXPECT_TRUE(other->Finish().ok());
  EXPECT_TRUE(stream->Finish().ok());
}

// So many sequences that its answer counts 100 times its own bytes, and it is read on another
// thread than gRPC's.
v1::EncodeRequest ManySequences() {
  v1::EncodeRequest request;
  request.set_model("tiny");
  for (int i = 0; i < 3500; ++i) {
    AddIds(request, std::vector<int32_t>(4, kHello));
  }
  return request;
}

TEST(EncoderStreamTest, WaitsForTheSizeOfEachAnswerBeforeItReadsOn) {
  constexpr int kWrites = 12;
  const v1::EncodeRequest request = ManySequences();
  const auto request_bytes = static_cast<int64_t>(request.ByteSizeLong());
  ASSERT_GT(request_bytes, 32 << 10) << "else gRPC's thread reads it";
  const int64_t answer_bytes = 3500 * (kTinyConfig.hidden * 4 + kSequenceBytes) + kAnswerBytes;
  InProcessServer::Options options;
  options.flags.max_request_bytes = 2 * answer_bytes;  // a stream's limit is twice that
  InProcessServer server(options);
  server.AwaitReady();
  server.run_gate().Close();
  grpc::ClientContext context;
  const auto stream = server.encoder().EncodeStream(&context);
  std::thread writer([&] {
    for (int i = 0; i < kWrites; ++i) stream->Write(request);
    stream->WritesDone();
  });
  const std::string inflight = R"(attendant_inflight_requests{model="tiny"})";
  server.AwaitMetric(inflight, 4);
  // A later call comes after what the stream could still have sent.
  auto later = std::async(std::launch::async, [&server] { return CallHello(server.encoder()); });
  server.AwaitMetric(inflight, 5);
  EXPECT_EQ(server.Metric(inflight), 5);
  server.run_gate().Open();
  int answers = 0;
  v1::EncodeStreamResponse answer;
  while (stream->Read(&answer)) answers += answer.has_response() ? 1 : 0;
  EXPECT_EQ(answers, kWrites);
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(later.get().ok());
}

// Its client reads nothing, so the second answer waits behind the first.
TEST(EncoderStreamTest, AnAnsweredRequestHoldsItsAnswerOnly) {
  v1::EncodeRequest long_text = Numbered(2);
  long_text.mutable_sequences()->mutable_sequences(0)->set_text(std::string(200000, ' '));
  v1::EncodeRequest large_answer = Numbered(1);
  large_answer.mutable_outputs()->mutable_attention_weights();
  while (large_answer.sequences().sequences_size() < 40) {
    AddIds(large_answer, std::vector<int32_t>(64, kHello));
  }
  InProcessServer::Options options;
  options.flags.max_request_bytes = 4 << 20;
  options.flags.memory.max_pending_request_bytes = 3 * 200000;  // of one long text, read
  InProcessServer server(options);
  server.AwaitReady();
  grpc::ClientContext context;
  const auto slow = v1::Encoder::NewStub(server.NewChannelOfSlowReader());
  const auto stream = slow->EncodeStream(&context);
  const std::string answered =
      R"(attendant_requests_total{code="OK",method="encode_stream",model="tiny"})";
  ASSERT_TRUE(stream->Write(large_answer));
  server.AwaitMetric(answered, 1);
  ASSERT_TRUE(stream->Write(long_text));
  server.AwaitMetric(answered, 2);
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  v1::EncodeResponse response;
  grpc::Status status;
  do {  // the memory is given back a little after the request is counted
    status = CallEncode(server.encoder(), long_text, response);
  } while (!status.ok() && std::chrono::steady_clock::now() < last);
  EXPECT_TRUE(status.ok()) << status.error_message();
  stream->WritesDone();
  EXPECT_EQ(ReadAll(*stream).size(), 2u);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(EncoderStreamTest, CancelTakesItsRequestsOutOfTheQueue) {
  InProcessServer server;
  server.AwaitReady();
  server.run_gate().Close();
  grpc::ClientContext context;
  const auto stream = server.encoder().EncodeStream(&context);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(stream->Write(Numbered(i)));
  server.AwaitMetric(R"(attendant_inflight_requests{model="tiny"})", 8);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server.AwaitMetric(R"(attendant_inflight_requests{model="tiny"})", 0);
  server.run_gate().Open();
  EXPECT_TRUE(CallHello(server.encoder()).ok());
}

TEST(EncoderStreamTest, DrainAnswersWhatWasReadAndEndsTheStream) {
  InProcessServer server;
  server.AwaitReady();
  server.run_gate().Close();
  grpc::ClientContext context;
  const auto stream = server.encoder().EncodeStream(&context);
  ASSERT_TRUE(stream->Write(Numbered(0)));
  server.run_gate().AwaitWaiting(1);
  for (int i = 1; i < 3; ++i) ASSERT_TRUE(stream->Write(Numbered(i)));
  server.AwaitMetric(R"(attendant_queue_requests{model="tiny"})", 2);
  server.RequestStop();
  server.run_gate().Open();
  const auto answers = ReadAll(*stream);
  ASSERT_EQ(answers.size(), 3u);
  for (const auto& [id, answer] : answers) EXPECT_TRUE(answer.has_response()) << id;
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(server.AwaitStopped().ok());
}

}  // namespace
}  // namespace attendant
