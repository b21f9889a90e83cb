// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/server/in_process_server.h"

namespace attendant {
namespace {

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

  void Stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void Call(v1::Encoder::Stub& stub) {
    const grpc::Status status = CallHello(stub);
    EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::UNAVAILABLE)
        << status.error_code() << ": " << status.error_message();
    if (status.ok()) ++answered_;
  }

  std::atomic<bool> stopping_{false};
  std::atomic<int> answered_{0};
  std::vector<std::thread> threads_;
};

// Whoever comes too late is told so in the one way that clients retry elsewhere.
TEST(DrainTest, LateCallsAreUnavailableAtEveryMoment) {
  constexpr int kRounds = 30;
  for (int round = 0; round < kRounds; ++round) {
    InProcessServer server;
    server.AwaitReady();
    Hammer hammer(server);
    hammer.AwaitAnswers(4 * Hammer::kThreads);
    server.RequestStop();
    EXPECT_TRUE(server.AwaitStopped().ok());
    hammer.Stop();
  }
}

}  // namespace
}  // namespace attendant
