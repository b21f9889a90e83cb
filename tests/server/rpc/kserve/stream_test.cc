// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/rpc/kserve/fixture.h"

namespace attendant {
namespace {

using testing::HasSubstr;

using Stream = grpc::ClientReaderWriter<ModelInferRequest, inference::ModelStreamInferResponse>;

// More requests than may be in flight, every fifth of them bad.
TEST_F(KServeServiceTest, StreamAnswersEveryRequestOnceById) {
  constexpr int kRequests = 10 * kMaxStreamRequests + 1;
  const std::vector<float> expected = Values(Infer(Request("tiny.ids", 1, {5, 6, 7})));
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub_->ModelStreamInfer(&context);
  std::thread writer([&stream] {
    for (int i = 0; i < kRequests; ++i) {
      ModelInferRequest request = Request("tiny.ids", 1, {5, 6, i % 5 == 0 ? 1000 : 7});
      request.set_id(absl::StrCat(i));
      EXPECT_TRUE(stream->Write(request));
    }
    EXPECT_TRUE(stream->WritesDone());
  });
  std::map<std::string, int> answers;
  inference::ModelStreamInferResponse response;
  while (stream->Read(&response)) {
    const ModelInferResponse& infer = response.infer_response();
    ++answers[infer.id()];
    EXPECT_TRUE(infer.parameters().at("triton_final_response").bool_param());
    if (std::stoi(infer.id()) % 5 == 0) {
      EXPECT_THAT(response.error_message(), HasSubstr("1000"));
    } else {
      EXPECT_EQ(response.error_message(), "");
      EXPECT_EQ(Values(infer), expected);
    }
  }
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answers.size(), static_cast<size_t>(kRequests));
  for (const auto& [id, count] : answers) EXPECT_EQ(count, 1) << id;
}

TEST_F(KServeServiceTest, EmptyStreamEndsWell) {
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub_->ModelStreamInfer(&context);
  EXPECT_TRUE(stream->WritesDone());
  inference::ModelStreamInferResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(KServeServiceTest, ClosedStreamsAnswerWhatTheyHaveReadAndEnd) {
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub_->ModelStreamInfer(&context);
  ASSERT_TRUE(stream->Write(Request("tiny.ids", 1, {5, 6, 7})));
  inference::ModelStreamInferResponse response;
  ASSERT_TRUE(stream->Read(&response));
  for (OpenMethod* method : service_.open_methods()) method->CloseAll();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);

  grpc::ClientContext late_context;
  const std::unique_ptr<Stream> late = stub_->ModelStreamInfer(&late_context);
  EXPECT_FALSE(late->Read(&response));
  EXPECT_EQ(late->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// The client goes at every moment of a stream's life; SetUp's objects must outlive every request.
TEST_F(KServeServiceTest, CancelledStreamsLeaveNothingBehind) {
  for (int writes = 0; writes < 40; ++writes) {
    grpc::ClientContext context;
    const std::unique_ptr<Stream> stream = stub_->ModelStreamInfer(&context);
    for (int i = 0; i < writes; ++i) stream->Write(Request("tiny.encoder", 1, {5, 6, 7}));
    inference::ModelStreamInferResponse response;
    if (writes % 2 == 1) {
      EXPECT_TRUE(stream->Read(&response));
    }
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_FALSE(Values(Infer(Request("tiny.ids", 1, {5}))).empty());
}

}  // namespace
}  // namespace attendant
