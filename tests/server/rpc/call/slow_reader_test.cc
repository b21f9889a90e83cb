// SPDX-License-Identifier: Apache-2.0
// A client that does not take its answer loses it, in calls and in streams; others are served.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tei/v1/tei.grpc.pb.h"
#include "tests/server/in_process_server.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

// Answers of more bytes than HTTP/2 lets lie unread at its client.
v1::EncodeRequest LargeAnswer() {
  v1::EncodeRequest request;
  request.set_model("tiny");
  request.mutable_outputs()->mutable_attention_weights();
  for (int i = 0; i < 60; ++i) {
    v1::TokenIds& ids = *request.mutable_sequences()->add_sequences()->mutable_ids();
    for (int t = 0; t < 64; ++t) ids.add_token_ids(kHello);
  }
  return request;
}

// Sends a request and does not read the answer.
class NoReader {
 public:
  NoReader(const InProcessServer& server, const std::string& method)
      : stub_(server.NewChannelOfSlowReader()) {
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(nullptr);
    Await();
    const std::string bytes = LargeAnswer().SerializeAsString();
    const grpc::Slice slice(bytes);
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    Await();
    call_->WritesDone(nullptr);
    Await();
  }
  // Reads after all: the status that the server ended the call with.
  grpc::Status End() {
    grpc::ByteBuffer answer;
    call_->Read(&answer, nullptr);
    EXPECT_FALSE(Await()) << "the answer is cut off";
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Await();
    return status;
  }

 private:
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue_.Next(&tag, &ok));
    return ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

class SlowReaderTest : public testing::TestWithParam<const char*> {};

TEST_P(SlowReaderTest, LosesItsAnswer) {
  InProcessServer::Options options;
  options.flags.max_write_s = 1;
  InProcessServer server(options);
  server.AwaitReady();
  const std::string refused = R"(attendant_refused_total{reason="slow_reader"})";
  NoReader slow(server, GetParam());
  EXPECT_TRUE(CallHello(server.encoder()).ok());
  server.AwaitMetric(refused, 1);
  if (HasFatalFailure()) return;
  EXPECT_EQ(slow.End().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(CallHello(server.encoder()).ok());
  EXPECT_EQ(server.Metric(refused), 1) << "each call once";
}

INSTANTIATE_TEST_SUITE_P(All, SlowReaderTest,
                         testing::Values("/attendant.v1.Encoder/Encode",
                                         "/attendant.v1.Encoder/EncodeStream"),
                         [](const auto& test) {
                           const std::string path = test.param;
                           return path.substr(path.rfind('/') + 1);
                         });

// A stream whose messages make one request.
TEST(SlowSenderTest, LosesItsCall) {
  InProcessServer::Options options;
  options.flags.max_write_s = 1;
  InProcessServer server(options);
  server.AwaitReady();
  const std::unique_ptr<tei::v1::Rerank::Stub> stub =
      tei::v1::Rerank::NewStub(server.NewChannelOfSlowReader());
  grpc::ClientContext context;
  tei::v1::RerankResponse response;
  const auto writer = stub->RerankStream(&context, &response);
  tei::v1::RerankStreamRequest request;
  request.set_query("hello");
  request.set_text("world");
  ASSERT_TRUE(writer->Write(request));
  server.AwaitMetric(R"(attendant_refused_total{reason="slow_reader"})", 1);
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace attendant
