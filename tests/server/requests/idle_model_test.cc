// SPDX-License-Identifier: Apache-2.0
// A request whose model is idle, or becomes idle on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/requests/request_run.h"
#include "tests/server/models/registry_fixture.h"

namespace attendant {
namespace {

class EmptyMessage final : public RequestMessage {
 public:
  int64_t bytes() const override { return 0; }
  absl::StatusOr<int64_t> Scan() override { return 0; }
  absl::Status Parse() override { return absl::OkStatus(); }
  const std::string& id() const override { return id_; }
  const std::string& model() const override { return model_; }

 private:
  const std::string id_;
  const std::string model_ = "tiny";
};

// Asks for nothing of its model.
class EmptyRun final : public RequestRun {
 public:
  EmptyRun(const RequestDependencies& dependencies, RequestCall call, absl::Duration timeout)
      : RequestRun(dependencies, std::move(call)), timeout_(timeout) {}

 private:
  absl::Duration Timeout() const override { return timeout_; }
  absl::StatusOr<std::shared_ptr<ServableModel>> Decode() override {
    return dependencies().models.Find(call().model);
  }
  absl::StatusOr<WorkRequest> Prepare() override {
    WorkRequest request;
    request.work.emplace<EncodeWork>();
    return request;
  }
  void Answer(Work /*work*/) override {}
  RequestTokens CountTokens(ModelMetrics& /*metrics*/) const override { return {}; }

  const absl::Duration timeout_;
};

constexpr int kMaxLoads = 4096;  // that wait

// The model is unloaded at once when nobody shares in it.
class IdleRequestTest : public ModelRegistryTest {
 protected:
  IdleRequestTest() : ModelRegistryTest({.unload_idle = absl::Milliseconds(1)}) {
    registry_.SetModels({{"tiny", directory_ / "tiny"}});
    registry_.StartLoading();
    AwaitChange("tiny", ModelState::kIdle);
  }

  // Until no thread works on the request, nor is in its executor.
  void AwaitEnded() {
    while (state_.use_count() > 1) std::this_thread::yield();
    std::promise<void> next;
    registry_.Load("nobody", [&](const absl::Status&) { next.set_value(); });
    next.get_future().get();
  }

  std::future<absl::Status> Start(absl::Time deadline = absl::InfiniteFuture(),
                                  absl::Duration timeout = absl::InfiniteDuration()) {
    const CallGate::Entry entry = gate_.Enter(
        {.method = method_, .peer = "a", .header = [](absl::string_view) { return std::nullopt; }});
    auto ended = std::make_shared<std::promise<absl::Status>>();
    RequestCall call;
    call.message = std::make_unique<EmptyMessage>();
    call.deadline = deadline;
    call.state = state_ = std::make_shared<CallState>(entry.call, budgets_.ForConnection("a"));
    call.done = [ended](const absl::Status& status) { ended->set_value(status); };
    std::future<absl::Status> future = ended->get_future();
    RequestRun::Start(std::make_unique<EmptyRun>(dependencies_, std::move(call), timeout));
    return future;
  }

  // The end of a request while the model is still being loaded.
  absl::Status EndWhileLoading(absl::Time deadline, absl::Duration timeout, bool cancel) {
    load_gate_.Close();
    std::future<absl::Status> request = Start(deadline, timeout);
    load_gate_.AwaitWaiting(1);
    if (cancel) state_->Cancel();
    const absl::Time give_up = SteadyNow() + absl::Seconds(30);
    absl::AnyInvocable<void()> held;
    while (held == nullptr && SteadyNow() < give_up) held = TakeHeld();
    EXPECT_TRUE(held != nullptr) << "the request waits until the model is loaded";
    if (held != nullptr) held();
    held = nullptr;  // it has the request
    load_gate_.Open();
    const absl::Status status = request.get();
    AwaitEnded();
    return status;
  }

  absl::AnyInvocable<void()> TakeHeld() {
    absl::MutexLock lock(&posted_mutex_);
    return std::move(held_);
  }

  const CallMethod method_{"service/Method", MethodGroup::kInfer};
  CallGate gate_{metrics_};
  MemoryBudgets budgets_;
  ModelWaits waits_;
  std::shared_ptr<CallState> state_;
  absl::Mutex posted_mutex_;
  int posted_ ABSL_GUARDED_BY(posted_mutex_) = 0;
  absl::AnyInvocable<void()> held_ ABSL_GUARDED_BY(posted_mutex_);
  // Holds the first task until Release. The others run on the loading thread, before it looks for
  // idle models.
  RequestDependencies dependencies_{registry_,
                                    metrics_,
                                    budgets_,
                                    gate_,
                                    waits_,
                                    [this](absl::AnyInvocable<void()> task) {
                                      {
                                        absl::MutexLock lock(&posted_mutex_);
                                        if (++posted_ == 1) {
                                          held_ = std::move(task);
                                          return;
                                        }
                                      }
                                      task();
                                    },
                                    completions_.large_executor()};
};

TEST_F(IdleRequestTest, ARequestWhoseModelBecameIdleAgainWaitsForAnotherLoad) {
  std::future<absl::Status> request = Start();
  AwaitChange("tiny", ModelState::kIdle, 2);  // loaded, and unloaded before the request went on
  TakeHeld()();
  const absl::Status status = request.get();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(loads_, 3);
  AwaitEnded();
}

TEST_F(IdleRequestTest, ARequestThatWaitsEndsAtItsDeadline) {
  const absl::Status status = EndWhileLoading(SteadyNow() + absl::Milliseconds(20),
                                              absl::InfiniteDuration(), /*cancel=*/false);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(metrics_.Scrape(),
              testing::HasSubstr(R"(attendant_rejected_total{model="tiny",reason="deadline"} 1)"));
}

TEST_F(IdleRequestTest, ARequestThatWaitsEndsAfterTheTimeThatItsMessageGives) {
  const absl::Status status =
      EndWhileLoading(absl::InfiniteFuture(), absl::Milliseconds(20), /*cancel=*/false);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST_F(IdleRequestTest, ARequestThatWaitsEndsWhenItsClientGoes) {
  const absl::Status status =
      EndWhileLoading(absl::InfiniteFuture(), absl::InfiniteDuration(), /*cancel=*/true);
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_THAT(metrics_.Scrape(),
              testing::HasSubstr(R"(attendant_rejected_total{model="tiny",reason="cancelled"} 1)"));
}

TEST_F(IdleRequestTest, ARequestIsRefusedWhenTooManyLoadsWait) {
  load_gate_.Close();
  registry_.Load("tiny", [](const absl::Status&) {});
  load_gate_.AwaitWaiting(1);
  std::atomic<int> refused{0};
  for (int i = 0; i < kMaxLoads; ++i) {
    registry_.Load(absl::StrCat("nobody", i), [&refused](const absl::Status& status) {
      if (absl::IsResourceExhausted(status)) ++refused;
    });
  }
  EXPECT_EQ(refused, 0);
  std::future<absl::Status> request = Start();
  TakeHeld()();
  const bool ended = request.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  EXPECT_TRUE(ended);
  load_gate_.Open();
  const absl::Status status = request.get();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  AwaitEnded();
}

}  // namespace
}  // namespace attendant
