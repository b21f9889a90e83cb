// SPDX-License-Identifier: Apache-2.0
// The callers of gRPC against a server in this process that does what a test says.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_callback.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "client/answer.h"
#include "client/load/clock.h"
#include "client/load/protocols/grpc_load.h"
#include "client/load/protocols/stream_caller.h"
#include "client/load/protocols/unary_caller.h"
#include "inference/grpc_service.grpc.pb.h"
#include "tests/support/closed_port.h"

namespace attendant::client {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;
using inference::ModelStreamInferResponse;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a stream does with a request: sends these answers, then ends or reads the next request.
struct Reaction {
  std::vector<ModelStreamInferResponse> answers = {};
  std::optional<grpc::Status> end = {};
};
using Script = std::function<Reaction(const ModelInferRequest&)>;

class ScriptedStream final
    : public grpc::ServerBidiReactor<ModelInferRequest, ModelStreamInferResponse> {
 public:
  explicit ScriptedStream(const Script& script) : script_(script) { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    reaction_ = script_(request_);
    written_ = 0;
    Advance();
  }
  void OnWriteDone(bool ok) override { ok ? Advance() : Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  void Advance() {
    if (written_ < reaction_.answers.size()) return StartWrite(&reaction_.answers[written_++]);
    if (reaction_.end.has_value()) return Finish(*reaction_.end);
    StartRead(&request_);
  }

  const Script& script_;
  ModelInferRequest request_;
  Reaction reaction_;
  size_t written_ = 0;
};

class ScriptedServer final : public inference::GRPCInferenceService::CallbackService {
 public:
  explicit ScriptedServer(Script script) : script_(std::move(script)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~ScriptedServer() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  int num_streams() const { return num_streams_; }

  grpc::ServerBidiReactor<ModelInferRequest, ModelStreamInferResponse>* ModelStreamInfer(
      grpc::CallbackServerContext*) override {
    ++num_streams_;
    return new ScriptedStream(script_);
  }

  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const ModelInferRequest* request,
                                       ModelInferResponse* response) override {
    response->set_model_name(request->model_name());
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const Script script_;
  std::atomic<int> num_streams_ = 0;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

ModelStreamInferResponse AnswerTo(const ModelInferRequest& request) {
  ModelStreamInferResponse response;
  response.mutable_infer_response()->set_id(request.id());
  response.mutable_infer_response()->set_model_name(request.model_name());
  return response;
}

Reaction Echo(const ModelInferRequest& request) { return {.answers = {AnswerTo(request)}}; }

// The message of a result is the name that its answer has.
bool ReadStreamed(grpc::ByteBuffer& bytes, GrpcAnswer& answer) {
  ModelStreamInferResponse response;
  if (!ParseAnswer(bytes, response)) return false;
  answer.id = response.infer_response().id();
  answer.result.message = response.infer_response().model_name();
  if (!response.error_message().empty()) {
    answer.result = {.code = grpc::StatusCode::UNKNOWN, .message = response.error_message()};
  }
  return true;
}

bool ReadUnary(grpc::ByteBuffer& bytes, GrpcAnswer& answer) {
  ModelInferResponse response;
  if (!ParseAnswer(bytes, response)) return false;
  answer.result.message = response.model_name();
  return response.model_name() != "m1";
}

// Requests of the names m0, m1, m2, m3.
GrpcLoad MakeLoad(const std::string& address) {
  GrpcLoad load{.channels = {grpc::CreateChannel(address, grpc::InsecureChannelCredentials())},
                .requests = {},
                .unary = {.path = "/inference.GRPCInferenceService/ModelInfer", .read = ReadUnary},
                .stream = {.path = "/inference.GRPCInferenceService/ModelStreamInfer",
                           .read = ReadStreamed,
                           .id_field = ModelInferRequest::kIdFieldNumber}};
  for (int i = 0; i < 4; ++i) {
    ModelInferRequest request;
    request.set_model_name(absl::StrCat("m", i));
    load.requests.push_back(ToGrpcRequest(request, /*sequences=*/2, /*tokens=*/5));
  }
  return load;
}

// Starts requests [first, first + count) at once, and waits for all of them.
std::vector<CallResult> Ask(Caller& caller, int64_t first, int64_t count) {
  std::vector<CallResult> results(static_cast<size_t>(count));
  absl::BlockingCounter outstanding(static_cast<int>(count));
  for (int64_t i = 0; i < count; ++i) {
    caller.Start(first + i, 0, [&, i](const CallResult& result) {
      results[static_cast<size_t>(i)] = result;
      outstanding.DecrementCount();
    });
  }
  outstanding.Wait();
  return results;
}

std::vector<std::string> Messages(const std::vector<CallResult>& results) {
  std::vector<std::string> messages;
  for (const CallResult& result : results) messages.push_back(result.message);
  return messages;
}

std::vector<grpc::StatusCode> Codes(const std::vector<CallResult>& results) {
  std::vector<grpc::StatusCode> codes;
  for (const CallResult& result : results) codes.push_back(result.code);
  return codes;
}

TEST(StreamCallerTest, FindsTheRequestOfEachAnswer) {
  std::vector<ModelStreamInferResponse> kept;
  const ScriptedServer server([&](const ModelInferRequest& request) {
    kept.insert(kept.begin(), AnswerTo(request));
    return kept.size() < 4 ? Reaction{} : Reaction{.answers = std::exchange(kept, {})};
  });
  StreamCaller caller(MakeLoad(server.address()), absl::Minutes(1));
  for (int round = 0; round < 3; ++round) {
    const std::vector<CallResult> results = Ask(caller, 0, 4);
    EXPECT_THAT(Messages(results), ElementsAre("m0", "m1", "m2", "m3"));
    EXPECT_THAT(Codes(results), Each(grpc::StatusCode::OK));
    EXPECT_EQ(results[3].sequences, 2);
    EXPECT_EQ(results[3].tokens, 5);
  }
  EXPECT_EQ(server.num_streams(), 1);
}

TEST(StreamCallerTest, SendsTheNextRequestFromAnAnswer) {
  const ScriptedServer server(Echo);
  StreamCaller caller(MakeLoad(server.address()), absl::InfiniteDuration());
  constexpr int kRequests = 200;
  std::atomic<int> sent = 0;
  absl::BlockingCounter answered(kRequests);
  std::function<void()> send = [&] {
    const int index = sent++;
    if (index >= kRequests) return;
    caller.Start(index, 0, [&, index](const CallResult& result) {
      EXPECT_EQ(result.message, absl::StrCat("m", index % 4));
      send();
      answered.DecrementCount();
    });
  };
  for (int slot = 0; slot < 8; ++slot) send();
  answered.Wait();
}

TEST(StreamCallerTest, WithoutIdsAnswersComeInOrder) {
  const ScriptedServer server([](const ModelInferRequest& request) {
    EXPECT_EQ(request.id(), "");
    return Echo(request);
  });
  GrpcLoad load = MakeLoad(server.address());
  load.stream.id_field = 0;
  StreamCaller caller(std::move(load), absl::Minutes(1));
  EXPECT_THAT(Messages(Ask(caller, 1, 3)), ElementsAre("m1", "m2", "m3"));
}

TEST(StreamCallerTest, AFailedRequestLeavesTheStreamOpen) {
  const ScriptedServer server([](const ModelInferRequest& request) {
    ModelStreamInferResponse answer = AnswerTo(request);
    if (request.model_name() != "m1") answer.set_error_message("no " + request.model_name());
    if (request.model_name() == "m2") answer.clear_infer_response();  // as some servers do
    return Reaction{.answers = {answer}};
  });
  StreamCaller caller(MakeLoad(server.address()), absl::Minutes(1));
  const std::vector<CallResult> results = Ask(caller, 0, 3);
  EXPECT_THAT(Codes(results), ElementsAre(grpc::StatusCode::UNKNOWN, grpc::StatusCode::OK,
                                          grpc::StatusCode::UNKNOWN));
  EXPECT_THAT(Messages(results), ElementsAre("no m0", "m1", "no m2"));
  EXPECT_EQ(server.num_streams(), 1);
}

// Requests of a stream that breaks are errors, and the next one opens it again.
void ExpectBroken(const grpc::Status& end, grpc::StatusCode code, const std::string& message) {
  std::atomic<int> requests = 0;
  const ScriptedServer server([&](const ModelInferRequest& request) {
    const int number = ++requests;
    if (number == 2) return Reaction{.end = end};
    return number == 1 ? Reaction{} : Echo(request);
  });
  StreamCaller caller(MakeLoad(server.address()), absl::Minutes(1));
  const std::vector<CallResult> lost = Ask(caller, 0, 2);
  EXPECT_THAT(Codes(lost), ElementsAre(code, code));
  EXPECT_EQ(lost[0].message, message);
  EXPECT_THAT(Messages(Ask(caller, 2, 1)), ElementsAre("m2"));
  EXPECT_EQ(server.num_streams(), 2);
}

TEST(StreamCallerTest, ABrokenStreamIsOpenedAgain) {
  ExpectBroken({grpc::StatusCode::UNAVAILABLE, "gone"}, grpc::StatusCode::UNAVAILABLE, "gone");
}

TEST(StreamCallerTest, AnEndedStreamIsOpenedAgain) {
  ExpectBroken(grpc::Status::OK, grpc::StatusCode::UNAVAILABLE, "the server ended the stream");
}

TEST(StreamCallerTest, AnAnswerForNoRequestBreaksTheStream) {
  for (const char* id : {"7", "x"}) {
    const ScriptedServer server([id](const ModelInferRequest& request) {
      ModelStreamInferResponse answer = AnswerTo(request);
      if (request.model_name() == "m0") answer.mutable_infer_response()->set_id(id);
      return Reaction{.answers = {answer}};
    });
    StreamCaller caller(MakeLoad(server.address()), absl::Minutes(1));
    const std::vector<CallResult> lost = Ask(caller, 0, 1);
    EXPECT_THAT(Codes(lost), ElementsAre(grpc::StatusCode::INTERNAL));
    EXPECT_THAT(lost[0].message, HasSubstr(absl::StrCat("'", id, "'")));
    EXPECT_THAT(Messages(Ask(caller, 1, 1)), ElementsAre("m1"));
  }
}

TEST(StreamCallerTest, ARequestEndsWithItsTime) {
  const ScriptedServer server([](const ModelInferRequest&) { return Reaction{}; });
  StreamCaller caller(MakeLoad(server.address()), absl::Milliseconds(200));
  EXPECT_THAT(Codes(Ask(caller, 0, 1)), ElementsAre(grpc::StatusCode::DEADLINE_EXCEEDED));
}

// Stands still until it is set.
class StandingClock final : public LoadClock {
 public:
  explicit StandingClock(std::atomic<int>& seconds) : seconds_(seconds) {}
  absl::Duration Now() const override { return absl::Seconds(seconds_.load()); }
  void SleepUntil(absl::Duration) override {}

 private:
  std::atomic<int>& seconds_;
};

TEST(StreamCallerTest, ARequestEndsByTheClockOfTheLoad) {
  absl::Notification received;
  const ScriptedServer server([&](const ModelInferRequest& request) {
    if (request.model_name() == "m1") return Echo(request);
    received.Notify();
    return Reaction{};
  });
  std::atomic<int> seconds = 0;
  StreamCaller caller(MakeLoad(server.address()), absl::Seconds(3600),
                      std::make_unique<StandingClock>(seconds));
  absl::Notification late;
  caller.Start(0, 0, [&](const CallResult& result) {
    EXPECT_EQ(result.code, grpc::StatusCode::DEADLINE_EXCEEDED);
    late.Notify();
  });
  received.WaitForNotification();
  seconds = 3599;
  EXPECT_THAT(Messages(Ask(caller, 1, 1)), ElementsAre("m1"));
  EXPECT_FALSE(late.HasBeenNotified());
  seconds = 3600;
  late.WaitForNotification();
}

TEST(StreamCallerTest, ALateAnswerLeavesTheStreamOpen) {
  std::vector<ModelStreamInferResponse> answers;
  absl::Notification received;
  const ScriptedServer server([&](const ModelInferRequest& request) {
    answers.push_back(AnswerTo(request));
    if (request.model_name() == "m1") return Reaction{.answers = answers};
    received.Notify();
    return Reaction{};
  });
  std::atomic<int> seconds = 0;
  StreamCaller caller(MakeLoad(server.address()), absl::Seconds(3600),
                      std::make_unique<StandingClock>(seconds));
  absl::Notification late;
  caller.Start(0, 0, [&](const CallResult& result) {
    EXPECT_EQ(result.code, grpc::StatusCode::DEADLINE_EXCEEDED);
    late.Notify();
  });
  received.WaitForNotification();
  seconds = 3600;
  late.WaitForNotification();
  // The late answer comes before this one.
  EXPECT_THAT(Messages(Ask(caller, 1, 1)), ElementsAre("m1"));
  EXPECT_EQ(server.num_streams(), 1);
}

TEST(StreamCallerTest, CancelAndDestructionEndEveryRequest) {
  const ScriptedServer server([](const ModelInferRequest&) { return Reaction{}; });
  auto caller = std::make_unique<StreamCaller>(MakeLoad(server.address()), absl::Minutes(1));
  std::atomic<int> cancelled = 0;
  absl::BlockingCounter first(1);
  caller->Start(0, 0, [&](const CallResult& result) {
    cancelled += result.code == grpc::StatusCode::CANCELLED ? 1 : 0;
    first.DecrementCount();
  });
  caller->CancelAll();
  first.Wait();
  caller->Start(1, 0, [&](const CallResult& result) {
    cancelled += result.code == grpc::StatusCode::CANCELLED ? 1 : 0;
  });
  caller.reset();
  EXPECT_EQ(cancelled, 2);
}

TEST(StreamCallerTest, NoServerIsUnavailable) {
  const ClosedPort port;
  StreamCaller caller(MakeLoad(absl::StrCat("127.0.0.1:", port.number())), absl::Minutes(1));
  EXPECT_THAT(Codes(Ask(caller, 0, 2)), Each(grpc::StatusCode::UNAVAILABLE));
  EXPECT_THAT(Codes(Ask(caller, 0, 1)), Each(grpc::StatusCode::UNAVAILABLE));
}

TEST(UnaryCallerTest, AnswersAndWhatIsNone) {
  const ScriptedServer server(Echo);
  UnaryCaller caller(MakeLoad(server.address()), absl::Minutes(1));
  const std::vector<CallResult> results = Ask(caller, 0, 3);
  EXPECT_THAT(Codes(results),
              ElementsAre(grpc::StatusCode::OK, grpc::StatusCode::INTERNAL, grpc::StatusCode::OK));
  EXPECT_EQ(results[2].message, "m2");
  EXPECT_EQ(results[2].sequences, 2);
  EXPECT_EQ(results[1].sequences, 0);
}

}  // namespace
}  // namespace attendant::client
