// SPDX-License-Identifier: Apache-2.0
// Calls without a message give way to newer ones, whatever their methods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "server/requests/memory/memory_budgets.h"
#include "tests/server/http/http_client.h"
#include "tests/server/idle_call.h"
#include "tests/server/in_process_server.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr char kGaveWay[] = R"(attendant_refused_total{reason="call_memory"})";

// Three calls may wait.
InProcessServer::Options ThreeCalls() {
  InProcessServer::Options options;
  options.flags.memory.max_waiting_call_bytes = 4 * kCallBytes;
  return options;
}

// Calls that the server holds, each on a connection of its own.
int Held(const InProcessServer& server) {
  const std::string page = HttpGet(server.http_port(), "/connections").body;
  const std::string held = absl::StrCat("\"call_memory_bytes\": ", kCallBytes, "\n");
  return static_cast<int>(std::vector<std::string>(absl::StrSplit(page, held)).size()) - 1;
}

class WaitingCallsTest : public testing::TestWithParam<const char*> {};

TEST_P(WaitingCallsTest, TheOldestGivesWay) {
  InProcessServer server(ThreeCalls());
  server.AwaitReady();
  std::deque<IdleCall> idle;
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  for (int calls = 1; calls <= 3; ++calls) {
    idle.emplace_back(server, GetParam(), /*sends=*/false);
    while (Held(server) < calls) ASSERT_LT(absl::Now(), limit);
  }
  EXPECT_EQ(server.Metric(kGaveWay), 0);
  EXPECT_TRUE(CallHello(server.encoder()).ok()) << "newer calls get in";
  while (!idle.front().HasEnded()) ASSERT_LT(absl::Now(), limit);
  const grpc::Status& status = idle.front().status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(),
              HasSubstr("the limit is 81920 bytes (--max_waiting_call_bytes)"));
  EXPECT_EQ(server.Metric(kGaveWay), 1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(CallHello(server.encoder()).ok());
  EXPECT_EQ(server.Metric(kGaveWay), 1) << "answered calls wait no more";
  EXPECT_FALSE(idle[1].HasEnded());
  EXPECT_FALSE(idle[2].HasEnded());
}

INSTANTIATE_TEST_SUITE_P(All, WaitingCallsTest,
                         testing::Values("/attendant.v1.Encoder/Encode",
                                         "/attendant.v1.Encoder/ListModels",
                                         "/inference.GRPCInferenceService/ModelInfer",
                                         "/tei.v1.Embed/Embed", "/grpc.health.v1.Health/Check"),
                         [](const auto& test) {
                           const std::string path = test.param;
                           return path.substr(path.rfind('/') + 1);
                         });

}  // namespace
}  // namespace attendant
