// SPDX-License-Identifier: Apache-2.0
// Which executor a request's steps run on, what memory it holds, and when it began.
#include "server/requests/request_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/requests/encode_run.h"
#include "tests/server/metrics/exposition.h"
#include "tests/server/models/registry_fixture.h"

namespace attendant {
namespace {

constexpr int64_t kMany = 100 << 10;  // bytes, more than a transport's thread may work on
constexpr int64_t kLargeAnswer = 2 << 20;

// Of few bytes, which parsing may make more.
class ShortMessage final : public RequestMessage {
 public:
  explicit ShortMessage(int64_t parse_bytes) : parse_bytes_(parse_bytes) {}

  int64_t bytes() const override { return 100; }
  int64_t parse_bytes() const override { return parse_bytes_; }
  absl::StatusOr<int64_t> Scan() override { return 0; }
  absl::Status Parse() override { return absl::OkStatus(); }
  const std::string& id() const override { return id_; }
  const std::string& model() const override { return model_; }

 private:
  const int64_t parse_bytes_;
  const std::string id_;
  const std::string model_ = "tiny";
};

// What a run of these tests has seen.
struct Seen {
  absl::Duration total;
  bool answered = false;
  std::promise<absl::Status> ended;
};

// Encodes what it is given, whatever the message says.
class GivenRun final : public EncodeRun {
 public:
  GivenRun(const EncodeDependencies& dependencies, RequestCall call, EncodeInput input,
           int64_t text_bytes, Seen& seen)
      : EncodeRun(dependencies, std::move(call)),
        input_(std::move(input)),
        text_bytes_(text_bytes),
        seen_(seen) {}

 private:
  absl::StatusOr<EncodeInput> FromMessage() override { return std::move(input_); }
  void ToMessage(EncodeOutput& /*output*/) override { seen_.answered = true; }
  int64_t TextBytes(const EncodeOutput& /*output*/) const override { return text_bytes_; }
  void OnEnd(const absl::Status& /*status*/) override { seen_.total = times().total(); }

  EncodeInput input_;
  const int64_t text_bytes_;  // of the answer
  Seen& seen_;
};

class RequestRunTest : public ModelRegistryTest {
 protected:
  RequestRunTest() {
    registry_.SetModels({{"tiny", directory_ / "tiny"}});
    registry_.StartLoading();
    AwaitChange("tiny", ModelState::kReady);
    Renew();
  }

  // Makes a request, which Start begins.
  void Renew() {
    const CallGate::Entry entry = gate_.Enter(
        {.method = method_, .peer = "a", .header = [](absl::string_view) { return std::nullopt; }});
    call_ = {};
    call_.state = std::make_shared<CallState>(entry.call, budgets_.ForConnection("a"));
    call_.message = std::make_unique<ShortMessage>(100);
    seen_ = {};
  }
  void Start(std::vector<SequenceContent> sequences) {
    call_.done = [this](const absl::Status& status) { seen_.ended.set_value(status); };
    EncodeInput input;
    input.pooled = true;
    input.sequences = std::move(sequences);
    RequestRun::Start(std::make_unique<GivenRun>(dependencies_, std::move(call_), std::move(input),
                                                 answer_bytes_, seen_));
  }
  void AwaitEnd() {
    ended_ = seen_.ended.get_future().get();
    completions_.AwaitIdle();  // the run is freed there, and with it what it holds of `budgets_`
  }
  // Takes the request to its end.
  Seen& Run(std::vector<SequenceContent> sequences) {
    Start(std::move(sequences));
    AwaitEnd();
    return seen_;
  }

  double CountedAsCancelled() const {
    return Exposition::Parse(metrics_.Scrape())
        ->Value("attendant_rejected_total", {{"model", "tiny"}, {"reason", "cancelled"}});
  }

  const CallMethod method_{"service/Method", MethodGroup::kInfer};
  CallGate gate_{metrics_};
  MemoryBudgets budgets_;
  ModelWaits waits_;
  int posted_ = 0;
  int64_t answer_bytes_ = 0;
  int large_answers_ = 0;
  std::function<void()> before_large_answer_ = [] {};
  const RequestDependencies requests_{registry_,
                                      metrics_,
                                      budgets_,
                                      gate_,
                                      waits_,
                                      [this](absl::AnyInvocable<void()> task) {
                                        ++posted_;
                                        task();
                                      },
                                      [this](absl::AnyInvocable<void()> task) {
                                        ++large_answers_;
                                        before_large_answer_();
                                        task();
                                      }};
  const EncodeDependencies dependencies_{requests_, {}};
  RequestCall call_;
  Seen seen_;
  absl::Status ended_;
};

TEST_F(RequestRunTest, ASmallRequestStaysOnItsTransportsThread) {
  Run({"hello"});
  EXPECT_EQ(posted_, 0);
}

TEST_F(RequestRunTest, AMessageThatMayBecomeLargeGoesToTheExecutor) {
  call_.message = std::make_unique<ShortMessage>(kMany);
  Run({std::string(kMany, 'x')});
  EXPECT_EQ(posted_, 1) << "once, although its texts are long too";
}

TEST_F(RequestRunTest, AQueryCountsOnceForEachText) {
  const auto query = std::make_shared<const std::string>(kMany / 100, 'q');
  Run(std::vector<SequenceContent>(100, TextPair{.first = query, .second = "a"}));
  EXPECT_EQ(posted_, 1);
}

TEST_F(RequestRunTest, ASmallAnswerIsBuiltWhereItsBatchEnds) {
  EXPECT_TRUE(Run({"hello"}).answered);
  EXPECT_EQ(large_answers_, 0);
}

TEST_F(RequestRunTest, ALargeAnswerIsBuiltOnItsExecutor) {
  answer_bytes_ = kLargeAnswer;
  EXPECT_TRUE(Run({"hello"}).answered);
  EXPECT_EQ(large_answers_, 1);
}

TEST_F(RequestRunTest, AnAnswerIsNotBuiltAfterTheDeadline) {
  answer_bytes_ = kLargeAnswer;
  const absl::Time deadline = call_.deadline = SteadyNow() + absl::Milliseconds(200);
  before_large_answer_ = [deadline] {
    while (SteadyNow() < deadline) std::this_thread::yield();
  };
  Run({"hello"});
  EXPECT_FALSE(seen_.answered);
  EXPECT_TRUE(absl::IsDeadlineExceeded(ended_)) << ended_;
  EXPECT_THAT(metrics_.Scrape(),
              testing::HasSubstr(R"(attendant_rejected_total{model="tiny",reason="deadline"} 1)"));
}

TEST_F(RequestRunTest, AnAnswerIsNotBuiltForAClientThatHasGone) {
  answer_bytes_ = kLargeAnswer;
  before_large_answer_ = [state = call_.state] { state->Cancel(); };
  Run({"hello"});
  EXPECT_FALSE(seen_.answered);
  EXPECT_TRUE(absl::IsCancelled(ended_)) << ended_;
  EXPECT_THAT(metrics_.Scrape(),
              testing::HasSubstr(R"(attendant_rejected_total{model="tiny",reason="cancelled"} 1)"));
}

TEST_F(RequestRunTest, ACancellationBeforeTheDeadlineStaysOneWhenItPasses) {
  bool too_late = true;  // of the cancellation, on a machine that stood still: another one shows it
  double before = 0;     // an earlier request may count too: it was late only when this test looked
  while (too_late) {
    before = CountedAsCancelled();
    run_gate_.Close();
    Renew();
    const absl::Time deadline = call_.deadline = SteadyNow() + absl::Seconds(1);
    const std::shared_ptr<CallState> state = call_.state;
    completions_.Post([deadline] {
      while (SteadyNow() < deadline) std::this_thread::yield();
    });
    Start({"hello"});
    state->Cancel();
    too_late = EndsByDeadline(deadline, SteadyNow());
    run_gate_.Open();
    AwaitEnd();
  }
  EXPECT_TRUE(absl::IsCancelled(ended_)) << ended_;
  EXPECT_EQ(CountedAsCancelled(), before + 1);
}

// As by gRPC, when the deadline passes.
TEST_F(RequestRunTest, ACancellationAtTheDeadlineCountsAsThat) {
  answer_bytes_ = kLargeAnswer;
  const absl::Time deadline = call_.deadline = SteadyNow() + absl::Milliseconds(200);
  before_large_answer_ = [deadline, state = call_.state] {
    while (SteadyNow() < deadline) std::this_thread::yield();
    state->Cancel();
  };
  Run({"hello"});
  EXPECT_FALSE(seen_.answered);
  EXPECT_TRUE(absl::IsDeadlineExceeded(ended_)) << ended_;
  EXPECT_THAT(metrics_.Scrape(),
              testing::HasSubstr(R"(attendant_rejected_total{model="tiny",reason="deadline"} 1)"));
}

TEST_F(RequestRunTest, ItsTimeBeginsWhenItHasCome) {
  call_.arrival = SteadyNow() - absl::Hours(1);
  EXPECT_GE(Run({"hello"}).total, absl::Hours(1));
}

TEST_F(RequestRunTest, AcquiresWhatItsTransportDoesNotHold) {
  constexpr int64_t kHeld = 1000;
  const std::shared_ptr<CallState> state = call_.state;
  state->HoldRequest(*state->memory().AcquireRequest(kHeld));
  ASSERT_TRUE(state->AcquireRequestUpTo(kHeld).ok());
  EXPECT_EQ(state->memory().request_bytes(), kHeld);
  ASSERT_TRUE(state->AcquireRequestUpTo(3 * kHeld).ok());
  EXPECT_EQ(state->memory().request_bytes(), 3 * kHeld);
  state->ReleaseRequest();
  EXPECT_EQ(state->memory().request_bytes(), 0);
}

}  // namespace
}  // namespace attendant
