// SPDX-License-Identifier: Apache-2.0
#include "server/requests/call_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/access/call_gate.h"
#include "server/metrics/server_metrics.h"
#include "tests/server/batching/batcher_fixture.h"

namespace attendant {
namespace {

// A call whose requests wait behind one that keeps the worker.
class CallStateTest : public BatcherTest {
 protected:
  CallStateTest() {
    Start();
    Occupy(first_);
  }
  ~CallStateTest() override {
    engine_.Open();
    first_.Wait();
  }

  std::shared_ptr<CallState> NewState(std::function<void(int64_t)> on_admitted = nullptr) {
    const CallGate::Entry entry = gate_.Enter(
        {.method = method_, .peer = "a", .header = [](absl::string_view) { return std::nullopt; }});
    return std::make_shared<CallState>(entry.call, budgets_.ForConnection("a"),
                                       std::move(on_admitted));
  }

  const CallMethod method_{"service/Method", MethodGroup::kInfer};
  ServerMetrics metrics_{"test"};
  CallGate gate_{metrics_};
  MemoryBudgets budgets_;
  Answer first_;
};

TEST_F(CallStateTest, ACancelReachesARequestInTheQueue) {
  const std::shared_ptr<CallState> state = NewState();
  const std::shared_ptr<Batcher> batcher(batcher_.get(), [](Batcher*) {});
  Answer answer;
  state->SetSubmitted(batcher, Submit(1, {2}, answer));
  EXPECT_FALSE(state->cancelled());
  state->Cancel();
  EXPECT_TRUE(state->cancelled());
  EXPECT_EQ(answer.WaitForCode(), absl::StatusCode::kCancelled);
}

// The client goes between the submission and the moment at which the call hears of it.
TEST_F(CallStateTest, ACancelThatComesBeforeTheTicketReachesTheRequestToo) {
  const std::shared_ptr<CallState> state = NewState();
  const std::shared_ptr<Batcher> batcher(batcher_.get(), [](Batcher*) {});
  Answer answer;
  const RequestId id = Submit(1, {2}, answer);
  state->Cancel();
  EXPECT_FALSE(answer.done());
  state->SetSubmitted(batcher, id);
  EXPECT_EQ(answer.WaitForCode(), absl::StatusCode::kCancelled);
}

TEST_F(CallStateTest, ACancelReachesARequestThatWaitsForItsModel) {
  ModelWaits waits;
  for (const bool cancel_first : {false, true}) {
    const std::shared_ptr<CallState> state = NewState();
    std::vector<absl::Status> ends;
    const ModelWaits::Id id = waits.Add(
        absl::InfiniteFuture(), [&ends](const absl::Status& status) { ends.push_back(status); });
    if (cancel_first) state->Cancel();
    state->SetWaiting(waits, id);
    if (!cancel_first) state->Cancel();
    EXPECT_THAT(ends, testing::ElementsAre(CancelledByClient()));
  }
}

TEST_F(CallStateTest, ACancelAfterTheBatchersEndDoesNothing) {
  const std::shared_ptr<CallState> state = NewState();
  state->SetSubmitted(std::weak_ptr<Batcher>(), 7);
  state->Cancel();
  EXPECT_TRUE(state->cancelled());
}

TEST_F(CallStateTest, HoldsTheRequestsMemoryUntilItIsReleased) {
  const std::shared_ptr<ConnectionBudgets> connection = budgets_.ForConnection("a");
  int64_t admitted = 0;
  std::shared_ptr<CallState> state = NewState([&](int64_t bytes) { admitted = bytes; });
  ASSERT_TRUE(state->AcquireRequest(100).ok());
  ASSERT_TRUE(state->AcquireRequest(11).ok());
  EXPECT_EQ(connection->request_bytes(), 111);
  ASSERT_TRUE(state->AcquireResponse(50).ok());
  EXPECT_EQ(admitted, 50);
  EXPECT_EQ(connection->response_bytes(), 50);
  ASSERT_TRUE(state->AcquireAnswered(40).ok());
  EXPECT_EQ(connection->response_bytes(), 50) << "less than was promised";
  ASSERT_TRUE(state->AcquireAnswered(70).ok());
  EXPECT_EQ(connection->response_bytes(), 70);
  state->ReleaseRequest();
  EXPECT_EQ(connection->request_bytes(), 0);
  EXPECT_EQ(connection->response_bytes(), 70);
  state.reset();
  EXPECT_EQ(connection->response_bytes(), 0);
}

}  // namespace
}  // namespace attendant
