// SPDX-License-Identifier: Apache-2.0
// Streams whose API key goes from the file while they are open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tei/v1/tei.grpc.pb.h"
#include "tests/server/in_process_server.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr char kKey[] = "0123456789abcdef";
constexpr char kOther[] = "fedcba9876543210";
constexpr char kRefused[] = R"(attendant_refused_total{reason="unauthenticated"})";

class RevokedKeyTest : public testing::Test {
 protected:
  RevokedKeyTest() { server_.AwaitReady(); }

  InProcessServer::Options WithKeys() {
    WriteKeys(absl::StrCat(kKey, " search infer\n", kOther, " other infer\n"));
    InProcessServer::Options options;
    options.flags.access.api_keys = path_;
    options.flags.access.connections_page = ShowConnections::kOn;
    options.flags.tls_reload_s = 1;
    return options;
  }
  void WriteKeys(const std::string& text) {
    WriteFile(path_ + ".next", text);
    ASSERT_EQ(std::rename((path_ + ".next").c_str(), path_.c_str()), 0);
  }
  // Until the server has read these keys. REQUIRES: a call with kKey now ends with `expected`.
  void ChangeKeys(const std::string& text, grpc::StatusCode expected) {
    WriteKeys(text);
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (StatusOfNewCall().error_code() != expected) ASSERT_LT(absl::Now(), end);
  }
  // A call that no model answers.
  grpc::Status StatusOfNewCall() {
    grpc::ClientContext context;
    AddKey(context);
    v1::EncodeRequest request = HelloRequest();
    request.set_model("nobody");
    v1::EncodeResponse response;
    return server_.encoder().Encode(&context, request, &response);
  }
  static void AddKey(grpc::ClientContext& context) { context.AddMetadata("x-api-key", kKey); }

  TempDirectory directory_;
  const std::string path_ = directory_ / "keys";
  InProcessServer server_{WithKeys()};
};

TEST_F(RevokedKeyTest, TheNextMessageEndsTheStreamAndTheOnesBeforeAreAnswered) {
  grpc::ClientContext context;
  AddKey(context);
  const auto stream = server_.encoder().EncodeStream(&context);
  server_.run_gate().Close();
  ASSERT_TRUE(stream->Write(HelloRequest()));
  server_.run_gate().AwaitWaiting(1);
  ChangeKeys(absl::StrCat(kOther, " other infer\n"), grpc::StatusCode::UNAUTHENTICATED);
  const double refused = server_.Metric(kRefused);
  ASSERT_TRUE(stream->Write(HelloRequest()));
  server_.AwaitMetric(kRefused, refused + 1);
  server_.run_gate().Open();
  v1::EncodeStreamResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.response().sequences_size(), 1) << answer.error().message();
  EXPECT_FALSE(stream->Read(&answer));
  const grpc::Status end = stream->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(end.error_message(), StatusOfNewCall().error_message());
}

TEST_F(RevokedKeyTest, AStreamWhoseAnswersGoInOrderEndsAlike) {
  grpc::ClientContext context;
  AddKey(context);
  const auto stub = tei::v1::Embed::NewStub(server_.NewChannel());
  const auto stream = stub->EmbedStream(&context);
  tei::v1::EmbedRequest request;
  request.set_inputs("hello world");
  tei::v1::EmbedResponse answer;
  ASSERT_TRUE(stream->Write(request) && stream->Read(&answer));
  ChangeKeys(absl::StrCat(kKey, " search read\n"), grpc::StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(stream->Write(request));
  EXPECT_FALSE(stream->Read(&answer));
  const grpc::Status end = stream->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(end.error_message(), HasSubstr("does not have the group 'infer'"));
}

tei::v1::RerankStreamRequest OneText() {
  tei::v1::RerankStreamRequest request;
  request.set_query("hello");
  request.set_text("world");
  return request;
}

TEST_F(RevokedKeyTest, ACallThatCollectsItsRequestEnds) {
  grpc::ClientContext context;
  AddKey(context);
  const auto stub = tei::v1::Rerank::NewStub(server_.NewChannel());
  tei::v1::RerankResponse answer;
  const auto stream = stub->RerankStream(&context, &answer);
  ASSERT_TRUE(stream->Write(OneText()));
  ChangeKeys(absl::StrCat(kOther, " other infer\n"), grpc::StatusCode::UNAUTHENTICATED);
  stream->WritesDone();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

// Its client has gone: nobody gets a refusal.
TEST_F(RevokedKeyTest, ACancelledCallThatCollectsIsNotRefused) {
  const auto stub = tei::v1::Rerank::NewStub(server_.NewChannel());
  grpc::ClientContext context;
  AddKey(context);
  tei::v1::RerankResponse answer;
  server_.AwaitOpenCalls(0);  // the watch for the model has ended
  const auto stream = stub->RerankStream(&context, &answer);
  ASSERT_TRUE(stream->Write(OneText()));
  server_.AwaitOpenCalls(1);  // while its key counts
  ChangeKeys(absl::StrCat(kOther, " other infer\n"), grpc::StatusCode::UNAUTHENTICATED);
  const double refused = server_.Metric(kRefused);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server_.AwaitOpenCalls(0);
  EXPECT_EQ(server_.Metric(kRefused), refused);
}

TEST_F(RevokedKeyTest, AKeyThatStaysInAChangedFileGoesOn) {
  grpc::ClientContext context;
  AddKey(context);
  const auto stream = server_.encoder().EncodeStream(&context);
  v1::EncodeStreamResponse answer;
  ASSERT_TRUE(stream->Write(HelloRequest()) && stream->Read(&answer));
  ChangeKeys(absl::StrCat(kOther, " other infer\n"), grpc::StatusCode::UNAUTHENTICATED);
  ChangeKeys(absl::StrCat(kKey, " renamed infer\n"), grpc::StatusCode::NOT_FOUND);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(stream->Write(HelloRequest()) && stream->Read(&answer));
    EXPECT_EQ(answer.response().sequences_size(), 1) << answer.error().message();
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

}  // namespace
}  // namespace attendant
