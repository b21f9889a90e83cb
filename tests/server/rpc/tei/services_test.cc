// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "server/requests/memory/memory_budgets.h"
#include "tei/v1/tei.grpc.pb.h"
#include "tests/server/http/http_client.h"
#include "tests/server/in_process_server.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

namespace v1 = ::tei::v1;
using ::testing::HasSubstr;
using EmbedStream = grpc::ClientReaderWriter<v1::EmbedRequest, v1::EmbedResponse>;

v1::EmbedRequest Text(const std::string& text) {
  v1::EmbedRequest request;
  request.set_inputs(text);
  return request;
}

// Until its model is idle.
void AwaitIdle(InProcessServer& server) {
  const absl::Time end = absl::Now() + absl::Seconds(30);
  attendant::v1::ListModelsResponse models;
  do {
    grpc::ClientContext context;
    ASSERT_TRUE(server.encoder().ListModels(&context, {}, &models).ok());
    ASSERT_LT(absl::Now(), end);
  } while (models.models(0).state() != attendant::v1::MODEL_STATE_IDLE);
}

class TeiServicesTest : public ::testing::Test {
 protected:
  TeiServicesTest() { server_.AwaitReady(); }

  v1::EmbedResponse Embed(const v1::EmbedRequest& request) {
    grpc::ClientContext context;
    v1::EmbedResponse response;
    const grpc::Status status = embed_->Embed(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  grpc::Status EmbedFails(const v1::EmbedRequest& request) {
    grpc::ClientContext context;
    v1::EmbedResponse response;
    return embed_->Embed(&context, request, &response);
  }

  InProcessServer server_;
  std::shared_ptr<grpc::Channel> channel_ = server_.NewChannel();
  std::unique_ptr<v1::Embed::Stub> embed_ = v1::Embed::NewStub(channel_);
};

TEST_F(TeiServicesTest, AnEmbeddingIsThatOfEncodeAndNormalizedUnlessToldOtherwise) {
  attendant::v1::EncodeRequest own = HelloRequest();
  own.mutable_outputs()->mutable_pooled()->set_normalize(true);
  const attendant::v1::EncodeResponse expected = server_.Encode(own);

  v1::EmbedRequest request = Text("hello world");
  const v1::EmbedResponse response = Embed(request);
  EXPECT_THAT(response.embeddings(), ::testing::ElementsAreArray(Floats(expected.pooled())));
  EXPECT_EQ(response.metadata().compute_chars(), 11u);
  EXPECT_EQ(response.metadata().compute_tokens(), 4u);
  EXPECT_GT(response.metadata().total_time_ns(), 0u);

  request.set_normalize(false);
  const v1::EmbedResponse raw = Embed(request);
  const double norm = std::inner_product(raw.embeddings().begin(), raw.embeddings().end(),
                                         raw.embeddings().begin(), 0.0);
  EXPECT_GT(std::abs(norm - 1), 1e-3);

  request.set_dimensions(3);
  EXPECT_EQ(Embed(request).embeddings_size(), 3);
  EXPECT_EQ(Embed(request).embeddings(2), raw.embeddings(2));
}

TEST_F(TeiServicesTest, RefusesWhatItCannotDoByName) {
  v1::EmbedRequest request = Text("hello");
  request.set_dimensions(0);
  EXPECT_EQ(EmbedFails(request).error_message(), "dimensions is 0, the minimum is 1");
  EXPECT_THAT(EmbedFails(Text("")).error_message(), HasSubstr("inputs is empty"));

  const auto predict = v1::Predict::NewStub(channel_);
  v1::PredictPairRequest pair;
  pair.add_inputs("hello");
  v1::PredictResponse predictions;
  grpc::ClientContext first, second;
  grpc::Status status = predict->PredictPair(&first, pair, &predictions);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("'tiny' is no classifier"));

  const auto rerank = v1::Rerank::NewStub(channel_);
  v1::RerankRequest question;
  question.set_query("hello");
  question.add_texts("world");
  v1::RerankResponse ranks;
  status = rerank->Rerank(&second, question, &ranks);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(TeiServicesTest, AStreamAnswersInTheOrderOfItsRequests) {
  grpc::ClientContext context;
  const auto stream = embed_->EmbedStream(&context);
  std::vector<v1::EmbedRequest> requests;
  for (int i = 0; i < 100; ++i) {
    std::string text = "hello";
    for (int j = 0; j < (i * 7) % 13; ++j) text += j % 2 == 0 ? " world" : " hello";
    requests.push_back(Text(text));
    ASSERT_TRUE(stream->Write(requests.back()));
  }
  stream->WritesDone();
  v1::EmbedResponse response;
  for (const v1::EmbedRequest& request : requests) {
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_THAT(response.embeddings(), ::testing::ElementsAreArray(Embed(request).embeddings()));
  }
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(TeiServicesTest, TheFirstFailureEndsAStreamAfterTheAnswersBeforeIt) {
  grpc::ClientContext context;
  const auto stream = embed_->EmbedStream(&context);
  for (int i = 0; i < 5; ++i) stream->Write(Text("hello"));
  stream->Write(Text(""));
  for (int i = 0; i < 5; ++i) stream->Write(Text("world"));
  stream->WritesDone();
  v1::EmbedResponse response;
  int answers = 0;
  while (stream->Read(&response)) ++answers;
  EXPECT_EQ(answers, 5);
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "inputs is empty");
}

TEST_F(TeiServicesTest, EmbedAllHasAVectorForEachToken) {
  grpc::ClientContext context;
  v1::EmbedAllRequest request;
  request.set_inputs("hello world");
  v1::EmbedAllResponse response;
  ASSERT_TRUE(embed_->EmbedAll(&context, request, &response).ok());
  attendant::v1::EncodeRequest own = HelloRequest();
  own.mutable_outputs()->set_last_hidden_state(true);
  const attendant::v1::EncodeResponse expected = server_.Encode(own);
  std::vector<float> values;
  for (const v1::TokenEmbedding& token : response.token_embeddings()) {
    values.insert(values.end(), token.embeddings().begin(), token.embeddings().end());
  }
  EXPECT_EQ(response.token_embeddings_size(), 4);
  EXPECT_EQ(values, Floats(expected.last_hidden_state()));
}

TEST_F(TeiServicesTest, InfoTellsTheModel) {
  const auto info = v1::Info::NewStub(channel_);
  grpc::ClientContext context;
  v1::InfoResponse response;
  ASSERT_TRUE(info->Info(&context, {}, &response).ok());
  EXPECT_EQ(response.model_id(), "tiny");
  EXPECT_EQ(response.model_type(), v1::MODEL_TYPE_EMBEDDING);
}

TEST(TeiServicesModelTest, InfoTellsEachLimit) {
  InProcessServer server(InProcessServer::WithDistinctLimits());
  server.AwaitReady();
  const auto info = v1::Info::NewStub(server.NewChannel());
  grpc::ClientContext context;
  v1::InfoResponse response;
  ASSERT_TRUE(info->Info(&context, {}, &response).ok());
  EXPECT_EQ(response.max_batch_tokens(), 2000u);
  EXPECT_EQ(response.max_batch_requests(), 70u);
  EXPECT_EQ(response.max_concurrent_requests(), 300u);
  EXPECT_EQ(response.max_client_batch_size(), 60u);
}

TEST(TeiServicesModelTest, InfoOfAnIdleModelWakesNothing) {
  InProcessServer::Options options;
  options.flags.unload_idle_s = 1;
  InProcessServer server(options);
  server.AwaitReady();
  server.load_gate().Close();
  AwaitIdle(server);
  if (testing::Test::HasFatalFailure()) return;
  const auto info = v1::Info::NewStub(server.NewChannel());
  grpc::ClientContext context;
  v1::InfoResponse response;
  const grpc::Status status = info->Info(&context, {}, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.model_id(), "tiny");
  EXPECT_EQ(response.model_dtype(), "f32");
  EXPECT_EQ(response.max_input_length(), kTinyMaxTextTokens);
  EXPECT_EQ(response.max_concurrent_requests(), 4096u);
  const HttpAnswer answer = HttpGet(server.http_port(), "/info");
  EXPECT_EQ(answer.code, 200);
  EXPECT_THAT(answer.body, HasSubstr(R"("model_type":{"embedding":{"pooling":"mean"}})"));
  AwaitIdle(server);
}

TEST(TeiServicesModelTest, SeveralModelsAreToldApartByMetadata) {
  InProcessServer server({.broken_models = {"other"}});
  server.AwaitReady();
  const auto embed = v1::Embed::NewStub(server.NewChannel());
  grpc::ClientContext unnamed, named;
  v1::EmbedResponse response;
  grpc::Status status = embed->Embed(&unnamed, Text("hello"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("x-model"));
  named.AddMetadata("x-model", "tiny");
  status = embed->Embed(&named, Text("hello"), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(TeiServicesModelTest, AMethodThatOneModelAnswersMeansThatModel) {
  TempDirectory folder;
  WriteTinyClassifier(folder / "ranker", {"yes"});
  InProcessServer server({.models = {{"ranker", folder / "ranker"}}});
  server.AwaitReady();
  grpc::ClientContext unary, stream, embedding;
  v1::RerankRequest request;
  request.set_query("hello");
  request.add_texts("world");
  v1::RerankResponse ranks, streamed;
  const auto rerank = v1::Rerank::NewStub(server.NewChannel());
  grpc::Status status = rerank->Rerank(&unary, request, &ranks);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(ranks.ranks_size(), 1);
  v1::RerankStreamRequest part;
  part.set_query("hello");
  part.set_text("world");
  const auto writer = rerank->RerankStream(&stream, &streamed);
  writer->Write(part);
  writer->WritesDone();
  status = writer->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  v1::EmbedResponse embedded;
  status = v1::Embed::NewStub(server.NewChannel())->Embed(&embedding, Text("hello"), &embedded);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

std::string Words(const std::string& word, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += word + " ";
  return text;
}

TEST_F(TeiServicesTest, TextsAreCutOnTheSideThatTheRequestNames) {
  constexpr int kKept = static_cast<int>(kTinyMaxTextTokens) - 2;  // beside [CLS] and [SEP]
  v1::EmbedRequest request = Text(Words("hello", 40) + Words("world", 40));
  EXPECT_EQ(EmbedFails(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_truncate(true);
  const v1::EmbedResponse right = Embed(request);
  request.set_truncation_direction(v1::TRUNCATION_DIRECTION_LEFT);
  const v1::EmbedResponse left = Embed(request);
  const auto is = [](const v1::EmbedResponse& other) {
    return ::testing::ElementsAreArray(other.embeddings());
  };
  EXPECT_THAT(right.embeddings(), is(Embed(Text(Words("hello", kKept)))));
  EXPECT_THAT(left.embeddings(), is(Embed(Text(Words("world", kKept)))));
}

TEST(TeiServicesModelTest, AStreamOfTextsIsCutAsItsFirstMessageSays) {
  InProcessServer::Options options;
  options.write_model = [](const std::string& folder) { WriteTinyClassifier(folder, {"score"}); };
  InProcessServer server(options);
  server.AwaitReady();
  const auto rerank = v1::Rerank::NewStub(server.NewChannel());
  v1::RerankStreamRequest request;
  request.set_query("hello");
  request.set_text(Words("hello", 40) + Words("world", 40));
  const auto send = [&](v1::RerankResponse& response) {
    grpc::ClientContext context;
    const auto stream = rerank->RerankStream(&context, &response);
    stream->Write(request);
    stream->WritesDone();
    return stream->Finish();
  };
  v1::RerankResponse right, left;
  EXPECT_EQ(send(right).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "it is not cut";
  request.set_truncate(true);
  EXPECT_TRUE(send(right).ok());
  request.set_truncation_direction(v1::TRUNCATION_DIRECTION_LEFT);
  EXPECT_TRUE(send(left).ok());
  ASSERT_EQ(right.ranks_size(), 1);
  ASSERT_EQ(left.ranks_size(), 1);
  EXPECT_NE(left.ranks(0).score(), right.ranks(0).score());
}

// Of the requests of all connections.
int64_t HeldBytes(const InProcessServer& server) {
  const auto page = nlohmann::json::parse(HttpGet(server.http_port(), "/connections").body);
  int64_t bytes = 0;
  for (const auto& connection : page["connections"]) {
    bytes += connection["request_memory_bytes"].get<int64_t>();
  }
  return bytes;
}

// There is no room for it now, which is no fault of its client.
TEST(TeiServicesModelTest, AStreamWithoutMemoryIsNoMalformedMessage) {
  InProcessServer::Options options;
  options.write_model = [](const std::string& folder) { WriteTinyClassifier(folder, {"score"}); };
  options.flags.memory.max_pending_request_bytes = 1 << 20;
  InProcessServer server(options);
  server.AwaitReady();
  const auto rerank = v1::Rerank::NewStub(server.NewChannel());
  v1::RerankStreamRequest request;
  request.set_query("hello");
  request.set_text(std::string(600 << 10, 'a'));
  grpc::ClientContext open;
  v1::RerankResponse none;
  const auto holder = rerank->RerankStream(&open, &none);
  ASSERT_TRUE(holder->Write(request));
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  while (HeldBytes(server) < 600 << 10) ASSERT_LT(absl::Now(), limit);
  grpc::ClientContext context;
  v1::RerankResponse response;
  const auto stream = rerank->RerankStream(&context, &response);
  stream->Write(request);
  stream->WritesDone();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(server.Metric(R"(attendant_rejected_total{model="tiny",reason="memory"})"), 1);
  EXPECT_EQ(server.Metric(R"(attendant_refused_total{reason="message"})"), 0);
  open.TryCancel();
  EXPECT_FALSE(holder->Finish().ok());
}

// Of a server whose answers may hold so many bytes.
grpc::Status Predict(int64_t max_pending_response_bytes, v1::PredictResponse& response) {
  InProcessServer::Options options;
  options.write_model = [](const std::string& folder) {
    WriteTinyClassifier(folder, std::vector<std::string>(200, std::string(200, 'a')));
  };
  options.flags.memory.max_pending_response_bytes = max_pending_response_bytes;
  InProcessServer server(options);
  server.AwaitReady();
  grpc::ClientContext context;
  v1::PredictRequest request;
  request.set_inputs("hello");
  return v1::Predict::NewStub(server.NewChannel())->Predict(&context, request, &response);
}

TEST(TeiServicesModelTest, TokensThatTheAnswerCannotHoldAreNotTakenApart) {
  constexpr int64_t kTokenBytes = 72 + 5;  // as "hello" and "[SEP]"
  InProcessServer::Options options;
  options.flags.encode.max_response_bytes = kSequenceBytes + 4 * kTokenBytes;
  InProcessServer server(options);
  server.AwaitReady();
  const auto stub = v1::Tokenize::NewStub(server.NewChannel());
  const auto tokenize = [&](const std::string& text) {
    v1::EncodeRequest request;
    request.set_inputs(text);
    request.set_add_special_tokens(true);
    v1::EncodeResponse response;
    grpc::ClientContext context;
    return stub->Tokenize(&context, request, &response).error_message();
  };
  EXPECT_EQ(tokenize("hello world"), "");
  EXPECT_THAT(tokenize("hello world !"), HasSubstr("the answer up to input 0 takes"));
  EXPECT_EQ(tokenize("hello world hello world hello"), "the text has 7 tokens, the limit is 6");
}

TEST(TeiServicesModelTest, PredictionsCountInTheBudgetWithTheirLabels) {
  v1::PredictResponse response;
  const grpc::Status status = Predict(int64_t{1} << 30, response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.predictions_size(), 200);
  const auto bytes = static_cast<int64_t>(response.ByteSizeLong());
  EXPECT_EQ(Predict(bytes - 1, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(Predict(2 * bytes, response).ok());
}

}  // namespace
}  // namespace attendant
