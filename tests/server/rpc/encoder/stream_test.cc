// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
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
  v1::EncodeResponse alone;
  ASSERT_TRUE(CallEncode(server.encoder(), HelloRequest(), alone).ok());

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
