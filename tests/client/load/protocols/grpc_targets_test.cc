// SPDX-License-Identifier: Apache-2.0
// The targets of gRPC against a server in this process that says how many sequences it answers.
#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "attendant/v1/encoder.grpc.pb.h"
#include "client/load/protocols/protocols.h"
#include "inference/grpc_service.grpc.pb.h"
#include "tei/v1/tei.grpc.pb.h"

namespace attendant::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// How many sequences the answers are about.
using Rows = std::atomic<int64_t>;

template <typename Request, typename Response, typename Answer>
grpc::Status AnswerAll(grpc::ServerReaderWriter<Response, Request>& stream, const Answer& answer) {
  for (Request request; stream.Read(&request);) stream.Write(answer(request));
  return grpc::Status::OK;
}

class Encoder final : public v1::Encoder::Service {
 public:
  explicit Encoder(const Rows& rows) : rows_(rows) {}

  grpc::Status ListModels(grpc::ServerContext*, const v1::ListModelsRequest*,
                          v1::ListModelsResponse* response) override {
    v1::ModelInfo& model = *response->add_models();
    model.set_name("m");
    model.set_state(v1::MODEL_STATE_READY);
    model.set_vocab(10);
    model.set_max_sequence_tokens(8);
    return grpc::Status::OK;
  }
  grpc::Status Encode(grpc::ServerContext*, const v1::EncodeRequest*,
                      v1::EncodeResponse* response) override {
    *response = Answer();
    return grpc::Status::OK;
  }
  grpc::Status EncodeStream(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::EncodeStreamResponse, v1::EncodeRequest>* stream) override {
    return AnswerAll(*stream, [this](const v1::EncodeRequest& request) {
      v1::EncodeStreamResponse response;
      response.set_id(request.id());
      *response.mutable_response() = Answer();
      return response;
    });
  }

 private:
  v1::EncodeResponse Answer() const {
    v1::EncodeResponse response;
    for (int64_t row = 0; row < rows_; ++row) response.add_sequences()->set_tokens(1);
    return response;
  }

  const Rows& rows_;
};

class Inference final : public inference::GRPCInferenceService::Service {
 public:
  // `max_batch` 0: tensors have no batch dimension, and an answer has an output for each row.
  Inference(const Rows& rows, const std::atomic<int32_t>& max_batch)
      : rows_(rows), max_batch_(max_batch) {}

  grpc::Status ModelMetadata(grpc::ServerContext*, const inference::ModelMetadataRequest* request,
                             inference::ModelMetadataResponse* response) override {
    AddVersion(request->version());
    response->set_name("m");
    auto& input = *response->add_inputs();
    input.set_name("ids");
    input.set_datatype("INT64");
    if (max_batch_ > 0) input.add_shape(-1);
    input.add_shape(4);
    return grpc::Status::OK;
  }
  grpc::Status ModelConfig(grpc::ServerContext*, const inference::ModelConfigRequest* request,
                           inference::ModelConfigResponse* response) override {
    AddVersion(request->version());
    response->mutable_config()->set_max_batch_size(max_batch_);
    return grpc::Status::OK;
  }
  grpc::Status ModelInfer(grpc::ServerContext*, const inference::ModelInferRequest* request,
                          inference::ModelInferResponse* response) override {
    *response = Answer(*request);
    return grpc::Status::OK;
  }
  grpc::Status ModelStreamInfer(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<inference::ModelStreamInferResponse, inference::ModelInferRequest>*
          stream) override {
    return AnswerAll(*stream, [this](const inference::ModelInferRequest& request) {
      inference::ModelStreamInferResponse response;
      *response.mutable_infer_response() = Answer(request);
      return response;
    });
  }

  // That the requests named, of the model's description and then of inference.
  std::vector<std::string> versions() const {
    absl::MutexLock lock(&mutex_);
    return versions_;
  }

 private:
  void AddVersion(const std::string& version) {
    absl::MutexLock lock(&mutex_);
    versions_.push_back(version);
  }

  inference::ModelInferResponse Answer(const inference::ModelInferRequest& request) {
    AddVersion(request.model_version());
    inference::ModelInferResponse response;
    response.set_model_name("m");
    response.set_id(request.id());
    if (max_batch_ == 0) {
      for (int64_t row = 0; row < rows_; ++row) response.add_outputs()->add_shape(7);
      return response;
    }
    for (const int64_t row : {request.inputs(0).shape(0), rows_.load()}) {
      auto& output = *response.add_outputs();
      output.set_datatype("FP32");
      output.add_shape(row);
      output.add_shape(3);
      response.add_raw_output_contents(std::string(static_cast<size_t>(row) * 12, 'x'));
    }
    return response;
  }

  const Rows& rows_;
  const std::atomic<int32_t>& max_batch_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> versions_ ABSL_GUARDED_BY(mutex_);
};

class TeiInfo final : public tei::v1::Info::Service {
  grpc::Status Info(grpc::ServerContext*, const tei::v1::InfoRequest*,
                    tei::v1::InfoResponse* response) override {
    response->set_model_id("m");
    response->set_max_input_length(8);
    return grpc::Status::OK;
  }
};

class TeiEmbed final : public tei::v1::Embed::Service {
 public:
  explicit TeiEmbed(const Rows& rows) : rows_(rows) {}

  grpc::Status Embed(grpc::ServerContext*, const tei::v1::EmbedRequest*,
                     tei::v1::EmbedResponse* response) override {
    *response = Answer();
    return grpc::Status::OK;
  }
  grpc::Status EmbedStream(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<tei::v1::EmbedResponse, tei::v1::EmbedRequest>* stream) override {
    return AnswerAll(*stream, [this](const tei::v1::EmbedRequest&) { return Answer(); });
  }

 private:
  tei::v1::EmbedResponse Answer() const {
    tei::v1::EmbedResponse response;
    for (int64_t row = 0; row < rows_; ++row) response.add_embeddings(1);
    response.mutable_metadata()->set_compute_tokens(1);
    return response;
  }

  const Rows& rows_;
};

class GrpcTargetsTest : public ::testing::TestWithParam<bool> {
 protected:
  GrpcTargetsTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&encoder_);
    builder.RegisterService(&inference_);
    builder.RegisterService(&info_);
    builder.RegisterService(&embed_);
    server_ = builder.BuildAndStart();
    spec_.connect.target = absl::StrCat("127.0.0.1:", port);
    spec_.model = "m";
    spec_.streaming = GetParam();
  }
  ~GrpcTargetsTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  // A request of `batch` sequences, whose answer is about `rows`.
  CallResult Ask(absl::StatusOr<Target> (*make)(const TargetSpec&), int64_t batch, int64_t rows) {
    spec_.payload.batch = batch;
    rows_ = rows;
    const absl::StatusOr<Target> target = make(spec_);
    EXPECT_TRUE(target.ok()) << target.status();
    absl::Notification answered;
    CallResult answer;
    target->caller->Start(0, 0, [&](const CallResult& result) {
      answer = result;
      answered.Notify();
    });
    answered.WaitForNotification();
    return answer;
  }

  void ExpectShort(absl::StatusOr<Target> (*make)(const TargetSpec&), int64_t batch, int64_t rows) {
    const CallResult result = Ask(make, batch, rows);
    EXPECT_EQ(result.code, grpc::StatusCode::INTERNAL);
    EXPECT_THAT(result.message,
                HasSubstr(absl::StrCat("about ", rows, " sequences, its request has ", batch)));
    EXPECT_EQ(result.sequences, 0);
    EXPECT_FALSE(result.tokens.has_value());
  }

  Rows rows_ = 0;
  std::atomic<int32_t> max_batch_ = 8;
  Encoder encoder_{rows_};
  Inference inference_{rows_, max_batch_};
  TeiInfo info_;
  TeiEmbed embed_{rows_};
  std::unique_ptr<grpc::Server> server_;
  TargetSpec spec_;
};

INSTANTIATE_TEST_SUITE_P(Calls, GrpcTargetsTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Streams" : "Unary"; });

TEST_P(GrpcTargetsTest, AnswersOfAttendantMustHaveAllSequences) {
  EXPECT_EQ(Ask(MakeAttendantTarget, 3, 3).sequences, 3);
  ExpectShort(MakeAttendantTarget, 3, 2);
  ExpectShort(MakeAttendantTarget, 1, 0);
}

TEST_P(GrpcTargetsTest, AnswersOfKserveMustHaveAllSequencesInEachOutput) {
  EXPECT_EQ(Ask(MakeKserveTarget, 3, 3).sequences, 3);
  ExpectShort(MakeKserveTarget, 3, 2);
  ExpectShort(MakeKserveTarget, 3, 0);
}

TEST_P(GrpcTargetsTest, EachRequestOfKserveNamesTheVersion) {
  Ask(MakeKserveTarget, 1, 1);
  spec_.model_version = 3;
  Ask(MakeKserveTarget, 1, 1);
  EXPECT_THAT(inference_.versions(), ElementsAre("", "", "", "3", "3", "3"));
}

TEST_P(GrpcTargetsTest, RecordedRequestsHaveTheirOwnNumberOfSequences) {
  spec_.payload.trace = {{.time = {}, .sequences = 3, .tokens = 9}};
  for (const auto make : {MakeAttendantTarget, MakeKserveTarget}) {
    const CallResult result = Ask(make, 1, 3);
    EXPECT_EQ(result.sequences, 3) << result.message;
  }
}

TEST_P(GrpcTargetsTest, AnswersOfKserveWithoutBatchesMustHaveAnOutput) {
  max_batch_ = 0;
  EXPECT_EQ(Ask(MakeKserveTarget, 1, 1).sequences, 1);
  EXPECT_EQ(Ask(MakeKserveTarget, 1, 2).sequences, 1);
  ExpectShort(MakeKserveTarget, 1, 0);
}

TEST_P(GrpcTargetsTest, ARequestOfTeiIsOneTextOfATraceToo) {
  spec_.payload.trace = {{.time = absl::ZeroDuration(), .sequences = 1, .tokens = 4}};
  EXPECT_EQ(Ask(MakeTeiTarget, 1, 4).sequences, 1);
  spec_.payload.trace.push_back({.time = absl::Seconds(1), .sequences = 8, .tokens = 32});
  const absl::Status status = MakeTeiTarget(spec_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the trace has one of 8"));
}

TEST_P(GrpcTargetsTest, AnswersOfTeiMustHaveAnEmbedding) {
  EXPECT_EQ(Ask(MakeTeiTarget, 1, 4).sequences, 1);
  ExpectShort(MakeTeiTarget, 1, 0);
}

}  // namespace
}  // namespace attendant::client
