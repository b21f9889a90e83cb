// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/server/http/http_client.h"
#include "tests/server/in_process_server.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// Callers on connections of their own that ask again at once, whatever they are answered.
class Hammer {
 public:
  static constexpr int kThreads = 8;

  explicit Hammer(const InProcessServer& server) {
    for (int i = 0; i < kThreads; ++i) {
      threads_.emplace_back([this, stub = v1::Encoder::NewStub(server.NewChannel())] {
        while (!stopping_) Call(*stub);
      });
    }
  }
  ~Hammer() { Stop(); }

  void AwaitAnswers(int count) const {
    while (answered_ < count) std::this_thread::yield();
  }

  int cancelled() const { return cancelled_; }

  void Stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void Call(v1::Encoder::Stub& stub) {
    const grpc::Status status = CallHello(stub);
    if (status.ok()) {
      ++answered_;
    } else if (status.error_code() == grpc::StatusCode::CANCELLED) {
      ++cancelled_;
    } else {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
    }
  }

  std::atomic<bool> stopping_{false};
  std::atomic<int> answered_{0};
  std::atomic<int> cancelled_{0};
  std::vector<std::thread> threads_;
};

// Whoever comes too late is told so in the one way that clients retry elsewhere, as long as the
// drain sends no GOAWAY, which may cancel calls.
TEST(DrainTest, LateCallsAreUnavailableAtEveryMoment) {
  constexpr int kRounds = 30;
  for (int round = 0; round < kRounds; ++round) {
    InProcessServer server({.goaway_after = absl::Hours(1)});
    server.AwaitReady();
    Hammer hammer(server);
    hammer.AwaitAnswers(4 * Hammer::kThreads);
    server.RequestStop();
    EXPECT_TRUE(server.AwaitStopped().ok());
    hammer.Stop();
    EXPECT_EQ(hammer.cancelled(), 0);
  }
}

// A server whose drain waits for a long call, and soon sends GOAWAY. Another one that its clients
// may go to, and a client that has one connection at a time.
class LongDrainTest : public testing::Test {
 protected:
  LongDrainTest() {
    first_.AwaitReady();
    second_.AwaitReady();
    first_.run_gate().Close();
    long_call_ = std::async(std::launch::async, [this] { return CallHello(*client_); });
    first_.run_gate().AwaitWaiting(1);
  }

  // Until its model serves no more: a call before that would wait behind the long one. GOAWAY
  // leaves HTTP alone.
  void StartDrain() {
    first_.RequestStop();
    HttpAnswer models;
    do {
      models = HttpGet(first_.http_port(), "/v1/models");
      ASSERT_EQ(models.code, 200);
    } while (absl::StrContains(models.body, "tiny"));
  }

  void ExpectNothingLost() {
    EXPECT_EQ(long_call_.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    first_.run_gate().Open();
    EXPECT_TRUE(long_call_.get().ok());
    EXPECT_TRUE(first_.AwaitStopped().ok());
  }

  InProcessServer first_{{.goaway_after = absl::Milliseconds(1)}};
  InProcessServer second_;
  const std::unique_ptr<v1::Encoder::Stub> client_ = v1::Encoder::NewStub(grpc::CreateChannel(
      absl::StrCat("ipv4:127.0.0.1:", first_.grpc_port(), ",127.0.0.1:", second_.grpc_port()),
      grpc::InsecureChannelCredentials()));
  std::future<grpc::Status> long_call_;
};

TEST_F(LongDrainTest, AClientWithOneConnectionMovesToAnotherServer) {
  StartDrain();
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  while (!CallHello(*client_).ok()) ASSERT_LT(absl::Now(), limit);
  EXPECT_TRUE(CallHello(*client_).ok());
  ExpectNothingLost();
}

TEST_F(LongDrainTest, TheConnectionsThatAreLeftAreCounted) {
  first_.AwaitMetric("attendant_connections", 2);
  StartDrain();
  first_.AwaitMetric("attendant_connections", 1);  // of the long call
  ExpectNothingLost();
}

TEST_F(LongDrainTest, AStreamWithoutRequestsEndsSoThatItsClientMoves) {
  grpc::ClientContext context;
  const auto stream = client_->EncodeStream(&context);
  v1::EncodeStreamResponse answer;
  first_.AwaitOpenCalls(2);  // with the long one
  StartDrain();
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  ExpectNothingLost();
}

TEST_F(LongDrainTest, AnswersOverHttpEndTheirConnections) {
  HttpClient client(first_.http_port());
  client.Get("/v1/models");
  ASSERT_THAT(client.Read().head, HasSubstr("Connection: keep-alive\r\n"));
  StartDrain();
  client.Get("/v1/models");
  EXPECT_THAT(client.Read().head, HasSubstr("Connection: close\r\n"));
  ExpectNothingLost();
}

}  // namespace
}  // namespace attendant
