// SPDX-License-Identifier: Apache-2.0
#include "server/app/grpc_server.h"

#include <grpc/grpc.h>
#include <grpcpp/impl/server_builder_plugin.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tests/server/in_process_server.h"
#include "tests/server/threads/failing_threads.h"

namespace attendant {
namespace {

// The arguments of the server that was built last.
struct SeenArguments {
  std::map<std::string, int> numbers;
  bool has_quota = false;
};
SeenArguments& Seen() {
  static SeenArguments seen;
  return seen;
}

// Looks at the arguments of each server of this process, and changes nothing.
class Observer final : public grpc::ServerBuilderPlugin {
 public:
  std::string name() override { return "observer"; }
  void InitServer(grpc::ServerInitializer*) override {}
  void Finish(grpc::ServerInitializer*) override {}
  void ChangeArguments(const std::string&, void*) override {}
  void UpdateChannelArguments(grpc::ChannelArguments* arguments) override {
    Seen() = {};
    const grpc_channel_args all = arguments->c_channel_args();
    for (size_t i = 0; i < all.num_args; ++i) {
      const grpc_arg& argument = all.args[i];
      if (argument.type == GRPC_ARG_INTEGER) Seen().numbers[argument.key] = argument.value.integer;
      Seen().has_quota |= std::string(argument.key) == GRPC_ARG_RESOURCE_QUOTA;
    }
  }
};

class GrpcServerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    grpc::ServerBuilder::InternalAddPluginFactory(
        [] { return std::unique_ptr<grpc::ServerBuilderPlugin>(new Observer()); });
  }
  int Number(const char* key) {
    const auto found = Seen().numbers.find(key);
    return found == Seen().numbers.end() ? -1 : found->second;
  }
};

// gRPC allows a ping every five minutes, and none without a call: clients that look whether their
// connection is alive would be told too_many_pings.
TEST_F(GrpcServerTest, ClientsMayPingEveryTenSecondsAndDeadOnesAreFound) {
  const InProcessServer server;
  EXPECT_EQ(Number(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS), 10'000);
  EXPECT_EQ(Number(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS), 1);
  EXPECT_EQ(Number(GRPC_ARG_KEEPALIVE_TIME_MS), 100'000);
  EXPECT_EQ(Number(GRPC_ARG_KEEPALIVE_TIMEOUT_MS), 20'000);
}

TEST_F(GrpcServerTest, MemoryCallsAndConnectionsHaveTheirLimits) {
  InProcessServer::Options options;
  options.flags.max_request_bytes = 3 << 20;
  options.flags.connections = {
      .max_calls = 17, .max_idle_s = 60, .max_age_s = 120, .max_age_grace_s = 5};
  const InProcessServer server(options);
  EXPECT_TRUE(Seen().has_quota);
  EXPECT_EQ(Number(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH), 3 << 20);
  EXPECT_EQ(Number(GRPC_ARG_MAX_CONCURRENT_STREAMS), 17);
  EXPECT_EQ(Number(GRPC_ARG_MAX_CONNECTION_IDLE_MS), 60'000);
  EXPECT_EQ(Number(GRPC_ARG_MAX_CONNECTION_AGE_MS), 120'000);
  EXPECT_EQ(Number(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS), 5'000);
  EXPECT_EQ(Number(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS), 20'000);
}

class NoObserver final : public ConnectionObserver {
 public:
  void OnAccepted() override {}
  void OnRefused(Refusal) override {}
  void OnOpenChanged(int64_t) override {}
};

// gRPC would not say so, and its end would wait for threads that never ran.
TEST_F(GrpcServerTest, ThreadsThatTheSystemRefusesAreAnError) {
  ServerFlags flags;
  flags.listen = "127.0.0.1:0";
  grpc::CallbackGenericService others;
  NoObserver observer;
  for (const int allowed : {0, 1, 7}) {
    const FailingThreads limited(allowed);
    const auto server = StartGrpcServer(flags, {}, others, observer);
    EXPECT_TRUE(absl::IsResourceExhausted(server.status())) << allowed;
  }
}

}  // namespace
}  // namespace attendant
