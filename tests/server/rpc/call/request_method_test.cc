// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/call/request_method.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "attendant/v1/encoder.grpc.pb.h"
#include "server/rpc/call/answer_stream.h"
#include "server/rpc/call/raw_service.h"
#include "server/threads/steady_time.h"

namespace attendant {
namespace {

using Finisher = AnswerStream<v1::EncodeStreamResponse>::Finisher;

// Answers unary requests at once. Those of streams wait for the test.
class HoldingService final : public RawService<v1::Encoder> {
 public:
  HoldingService(CallGate& gate, MemoryBudgets& budgets, Finisher finisher)
      : RawService(gate, budgets),
        method_(
            budgets, {},
            {.unary = Method::kEncode,
             .stream = Method::kEncodeStream,
             .response_of = [](v1::EncodeStreamResponse& answer) -> v1::EncodeResponse& {
               return *answer.mutable_response();
             },
             .finisher = finisher,
             .start = [this](RequestCall call, v1::EncodeResponse&) { Take(std::move(call)); }}) {
    ServeRequests("Encode", "EncodeStream", method_);
  }

  // The request of a stream that came first.
  RequestCall AwaitRequest() {
    const auto there = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !held_.empty(); };
    absl::MutexLock lock(&mutex_, absl::Condition(&there));
    RequestCall call = std::move(held_.front());
    held_.pop_front();
    return call;
  }
  size_t held() {
    absl::MutexLock lock(&mutex_);
    return held_.size();
  }

 private:
  void Take(RequestCall call) {
    if (call.method == Method::kEncode) return call.done(absl::OkStatus());
    absl::MutexLock lock(&mutex_);
    held_.push_back(std::move(call));
  }

  absl::Mutex mutex_;
  std::deque<RequestCall> held_ ABSL_GUARDED_BY(mutex_);
  RequestMethod<v1::EncodeRequest, v1::EncodeResponse, v1::EncodeStreamResponse> method_;
};

class RequestMethodTest : public testing::Test {
 protected:
  explicit RequestMethodTest(Finisher finisher = FinishStreamAnswer<v1::EncodeStreamResponse>)
      : service_(gate_, budgets_, finisher) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = v1::Encoder::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }

  // Until the stream ends.
  static int CountAnswers(
      grpc::ClientReaderWriter<v1::EncodeRequest, v1::EncodeStreamResponse>& stream) {
    v1::EncodeStreamResponse answer;
    int answers = 0;
    while (stream.Read(&answer)) ++answers;
    EXPECT_TRUE(stream.Finish().ok());
    return answers;
  }

  ServerMetrics metrics_{"test"};
  CallGate gate_{metrics_};
  MemoryBudgets budgets_;
  HoldingService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Encoder::Stub> stub_;
};

TEST_F(RequestMethodTest, AStreamReadsOnOnceTheSizeOfTheAnswerIsKnown) {
  grpc::ClientContext context;
  const auto stream = stub_->EncodeStream(&context);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(stream->Write(v1::EncodeRequest()));
  stream->WritesDone();
  RequestCall first = service_.AwaitRequest();
  // Other calls come and go after what the stream could have read.
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext other;
    v1::EncodeResponse response;
    EXPECT_TRUE(stub_->Encode(&other, v1::EncodeRequest(), &response).ok());
  }
  EXPECT_EQ(service_.held(), 0u);
  EXPECT_TRUE(first.state->AcquireResponse(100).ok());
  RequestCall second = service_.AwaitRequest();
  first.done(absl::OkStatus());
  second.done(absl::OkStatus());
  EXPECT_EQ(CountAnswers(*stream), 2);
}

TEST_F(RequestMethodTest, RequestsOfAStreamHaveItsDeadline) {
  for (const bool limited : {false, true}) {
    grpc::ClientContext context;
    if (limited) context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Hours(1)));
    const auto stream = stub_->EncodeStream(&context);
    ASSERT_TRUE(stream->Write(v1::EncodeRequest()));
    stream->WritesDone();
    RequestCall request = service_.AwaitRequest();
    EXPECT_EQ(request.deadline < SteadyNow() + absl::Hours(2), limited);
    EXPECT_GT(request.deadline, SteadyNow() + absl::Minutes(10));
    request.done(absl::OkStatus());
    EXPECT_EQ(CountAnswers(*stream), 1);
  }
}

class OrderedStreamTest : public RequestMethodTest {
 protected:
  OrderedStreamTest() : RequestMethodTest(nullptr) {}
};

TEST_F(OrderedStreamTest, ARequestThatComesAfterAFailureIsCancelled) {
  grpc::ClientContext context;
  const auto stream = stub_->EncodeStream(&context);
  std::vector<RequestCall> calls;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(stream->Write(v1::EncodeRequest()));
    calls.push_back(service_.AwaitRequest());
    ASSERT_TRUE(calls.back().state->AcquireResponse(100).ok());  // the stream reads the next one
  }
  calls[0].done(absl::InvalidArgumentError("the first one is wrong"));
  ASSERT_TRUE(stream->Write(v1::EncodeRequest()));
  calls.push_back(service_.AwaitRequest());
  EXPECT_TRUE(calls[1].state->cancelled());
  EXPECT_TRUE(calls[2].state->cancelled());
  for (int i = 1; i < 3; ++i) calls[i].done(absl::CancelledError());
  EXPECT_EQ(stream->Finish().error_message(), "the first one is wrong");
}

}  // namespace
}  // namespace attendant
