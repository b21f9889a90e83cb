// SPDX-License-Identifier: Apache-2.0
// A client that does not take its answer loses it, in calls and in streams; others are served.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tei/v1/tei.grpc.pb.h"
#include "tests/server/in_process_server.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

// The models' list is an answer of more bytes than HTTP/2 lets lie unread at its client.
std::vector<std::string> ManyModels() {
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back(absl::StrCat(std::string(120, 'x'), i));
  return names;
}

// Until their errors are in the answer.
void AwaitFailures(const InProcessServer& server) {
  server.AwaitMetric(absl::StrCat("attendant_model_failed{model=\"", ManyModels().back(), "\"}"),
                     1);
}

// So is that of this one.
v1::EncodeRequest LargeAnswer() {
  v1::EncodeRequest request;
  request.set_model("tiny");
  request.mutable_outputs()->mutable_attention_weights();
  for (int i = 0; i < 60; ++i) {
    AddIds(request, std::vector<int32_t>(64, kHello));
  }
  return request;
}

// Sends a request and does not read the answer.
class NoReader {
 public:
  NoReader(const InProcessServer& server, const std::string& method, const std::string& bytes)
      : stub_(server.NewChannelOfSlowReader()) {
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(nullptr);
    Await();
    const grpc::Slice slice(bytes);
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    Await();
    call_->WritesDone(nullptr);
    Await();
  }
  void Cancel() { context_.TryCancel(); }
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

constexpr char kList[] = "/attendant.v1.Encoder/ListModels";

class SlowReaderTest : public testing::TestWithParam<const char*> {};

TEST_P(SlowReaderTest, LosesItsAnswer) {
  InProcessServer::Options options;
  options.flags.max_write_s = 1;
  options.broken_models = ManyModels();
  InProcessServer server(options);
  server.AwaitReady();
  AwaitFailures(server);
  const std::string refused = R"(attendant_refused_total{reason="slow_reader"})";
  const bool lists = GetParam() == std::string(kList);
  NoReader slow(server, GetParam(), lists ? "" : LargeAnswer().SerializeAsString());
  EXPECT_TRUE(CallHello(server.encoder()).ok());
  server.AwaitMetric(refused, 1);
  if (HasFatalFailure()) return;
  EXPECT_EQ(slow.End().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(CallHello(server.encoder()).ok());
  EXPECT_EQ(server.Metric(refused), 1) << "each call once";
}

INSTANTIATE_TEST_SUITE_P(All, SlowReaderTest,
                         testing::Values("/attendant.v1.Encoder/Encode",
                                         "/attendant.v1.Encoder/EncodeStream", kList),
                         [](const auto& test) {
                           const std::string path = test.param;
                           return path.substr(path.rfind('/') + 1);
                         });

TEST(UnreadAnswerTest, HoldsMemoryWhateverItsMethod) {
  InProcessServer::Options options;
  options.flags.encode.max_response_bytes = 64 << 10;
  options.flags.memory.max_pending_response_bytes = 160 << 10;
  options.broken_models = ManyModels();
  InProcessServer server(options);
  server.AwaitReady();
  AwaitFailures(server);
  NoReader slow[] = {{server, kList, ""}, {server, kList, ""}};
  server.AwaitMetric(R"(attendant_refused_total{reason="response_memory"})", 1);
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckResponse health;
  EXPECT_TRUE(server.health().Check(&context, {}, &health).ok()) << "probes are answered";
  for (NoReader& call : slow) {
    call.Cancel();
    EXPECT_FALSE(call.End().ok());
  }
}

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
