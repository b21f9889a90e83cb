// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/call/calls.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "absl/time/time.h"
#include "attendant/v1/encoder.pb.h"
#include "server/threads/steady_time.h"

namespace attendant {
namespace {

TEST(ToGrpcStatusTest, KeepsTheCodeAndCutsTheMessage) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  const std::string text(1024, 'x');
  for (const std::string& longer : {text, text + "y"}) {
    const grpc::Status status = ToGrpcStatus(absl::NotFoundError(longer));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(status.error_message(), text);
  }
}

TEST(FinishStreamAnswerTest, AnErrorTakesThePlaceOfTheResponse) {
  v1::EncodeStreamResponse answer;
  answer.mutable_response()->set_model("tiny");
  FinishStreamAnswer("seven", absl::OkStatus(), answer);
  EXPECT_EQ(answer.id(), "seven");
  EXPECT_EQ(answer.response().model(), "tiny");
  absl::Status full = absl::ResourceExhaustedError(std::string(2000, 'x'));
  SetRetryAfter(full, absl::Milliseconds(70));
  FinishStreamAnswer("eight", full, answer);
  EXPECT_EQ(answer.id(), "eight");
  ASSERT_TRUE(answer.has_error());
  EXPECT_EQ(answer.error().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(answer.error().message().size(), 1024u);
  EXPECT_EQ(answer.error().retry_after_ms(), 70);
}

struct OpenCall {
  void Close() { closed = true; }
  bool closed = false;
};

TEST(OpenCallsTest, AreAwaitedUntilTheyAreGoneOrTheDeadline) {
  OpenCall call;
  OpenCalls<OpenCall> calls;
  calls.Add(&call);
  calls.CloseAll();
  EXPECT_TRUE(call.closed);
  const absl::Time deadline = SteadyNow() + absl::Milliseconds(5);
  calls.AwaitClosed(deadline);
  EXPECT_GE(SteadyNow(), deadline);
  std::thread end([&] { calls.Remove(&call); });
  calls.AwaitClosed(absl::InfiniteFuture());
  end.join();
}

}  // namespace
}  // namespace attendant
