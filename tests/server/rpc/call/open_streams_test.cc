// SPDX-License-Identifier: Apache-2.0
// Streams count however little their clients send.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "server/requests/memory/memory_budgets.h"
#include "tests/server/http/http_client.h"
#include "tests/server/idle_call.h"
#include "tests/server/in_process_server.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

constexpr char kRefused[] = R"(attendant_refused_total{reason="stream_memory"})";

struct OpenStreamCase {
  const char* method;
  bool sends = false;
};

class OpenStreamsTest : public testing::TestWithParam<OpenStreamCase> {
 protected:
  OpenStreamsTest() : server_(TwoStreams()) {
    server_.AwaitReady();
    while (AnyOpen()) continue;  // the watch of the line before ends
  }

  static InProcessServer::Options TwoStreams() {
    InProcessServer::Options options;
    options.flags.memory.max_open_stream_bytes = 2 * kStreamBytes;
    return options;
  }
  bool AnyOpen() {
    return absl::StrContains(HttpGet(server_.http_port(), "/connections").body,
                             R"("stream_memory_bytes": 32768)");
  }
  // A stream that is used: how it ends.
  grpc::StatusCode UseStream() {
    grpc::ClientContext context;
    const auto stream = server_.encoder().EncodeStream(&context);
    stream->Write(HelloRequest());
    stream->WritesDone();
    v1::EncodeStreamResponse answer;
    while (stream->Read(&answer)) continue;
    return stream->Finish().error_code();
  }

  InProcessServer server_;
};

TEST_P(OpenStreamsTest, AreRefusedBeyondTheirMemory) {
  std::deque<IdleCall> idle;
  for (int i = 0; i < 3; ++i) idle.emplace_back(server_, GetParam().method, GetParam().sends);
  const absl::Time end = absl::Now() + absl::Seconds(30);
  const auto refused = [&] {
    return std::find_if(idle.begin(), idle.end(), [](IdleCall& call) { return call.HasEnded(); });
  };
  while (refused() == idle.end()) ASSERT_LT(absl::Now(), end);
  const grpc::Status status = refused()->status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("open streams hold 65536 bytes"), std::string::npos)
      << status.error_message();
  EXPECT_NE(status.error_message().find("--max_open_stream_bytes"), std::string::npos);
  EXPECT_EQ(server_.Metric(kRefused), 1);
  EXPECT_EQ(UseStream(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(CallHello(server_.encoder()).ok()) << "calls without a stream go on";
  for (IdleCall& call : idle) call.Cancel();
  while (UseStream() != grpc::StatusCode::OK) ASSERT_LT(absl::Now(), end);
}

INSTANTIATE_TEST_SUITE_P(
    All, OpenStreamsTest,
    testing::Values(OpenStreamCase{"/attendant.v1.Encoder/EncodeStream"},
                    OpenStreamCase{"/attendant.v1.Attention/AttendStream"},
                    OpenStreamCase{"/inference.GRPCInferenceService/ModelStreamInfer"},
                    OpenStreamCase{"/tei.v1.Embed/EmbedStream"},
                    OpenStreamCase{"/tei.v1.Rerank/RerankStream"},
                    OpenStreamCase{
                        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"},
                    OpenStreamCase{"/grpc.health.v1.Health/Watch", /*sends=*/true}),
    [](const auto& test) {
      const std::string path = test.param.method;
      return path.substr(path.rfind('/') + 1);
    });

}  // namespace
}  // namespace attendant
