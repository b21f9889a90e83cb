// SPDX-License-Identifier: Apache-2.0
#include "client/client.h"

#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/client/fake_server.h"
#include "tests/support/checkpoint.h"
#include "tests/support/closed_port.h"

namespace attendant::client {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Client> Connect(const FakeServer& server,
                                absl::Duration timeout = absl::Seconds(20), int attempts = 1) {
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect({.target = server.address(), .timeout = timeout, .max_attempts = attempts});
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

TEST(ClientTest, EmbedsForTheOnlyModel) {
  const FakeServer server;
  const absl::StatusOr<Tensor> embeddings = Connect(server)->Embed({"a", "bcd"});
  ASSERT_TRUE(embeddings.ok()) << embeddings.status();
  EXPECT_THAT(embeddings->shape, ElementsAre(2, 4));
  EXPECT_THAT(embeddings->values, ElementsAre(3, 1, 0, 0, 5, 1, 0, 0));
  ASSERT_EQ(server.encode_requests().size(), 1);
  EXPECT_EQ(server.encode_requests()[0].model(), "toy");
}

TEST(ClientTest, EmbedsManyTextsInOrderInSeveralRequests) {
  const FakeServer server;
  std::vector<std::string> texts;
  for (size_t i = 0; i < 1000; ++i) texts.push_back(std::string(i % 37, 'x'));
  const absl::StatusOr<Tensor> embeddings = Connect(server)->Embed(texts);
  ASSERT_TRUE(embeddings.ok()) << embeddings.status();
  ASSERT_THAT(embeddings->shape, ElementsAre(1000, 4));
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(embeddings->values[4 * i], static_cast<float>(texts[i].size() + 2)) << i;
  }
  EXPECT_EQ(server.encode_requests().size(), 32);
}

TEST(ClientTest, EmbeddingsOfOneCallAreEquallyLong) {
  FakeServer server;
  server.WidenAnswers();
  const absl::Status status = Connect(server)->Embed(std::vector<std::string>(40, "x")).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  // Its two requests are out at the same time: either may be answered first.
  EXPECT_THAT(status.message(), AnyOf(HasSubstr("rows of 4 and of 5 values"),
                                      HasSubstr("rows of 5 and of 4 values")));
}

TEST(ClientTest, VersionsOfAModelAreOneModel) {
  FakeServer server;
  server.SetModels({"toy", "toy"});
  const std::unique_ptr<Client> client = Connect(server);
  EXPECT_EQ(client->OnlyModel().value_or("?"), "toy");
  const std::vector<ModelInfo> models = *client->Models();
  ASSERT_EQ(models.size(), 2);
  EXPECT_EQ(models[1].version, 2);
}

v1::ModelInfo Described(int64_t version, v1::ModelState state) {
  v1::ModelInfo model;
  model.set_name("toy");
  model.set_version(version);
  model.set_state(state);
  return model;
}

TEST(ClientTest, DescribesTheVersionThatAnswers) {
  FakeServer server;
  const std::unique_ptr<Client> client = Connect(server);
  const auto version = [&](int64_t asked) { return client->Describe("toy", asked)->version; };
  for (const v1::ModelState serving : {v1::MODEL_STATE_READY, v1::MODEL_STATE_IDLE}) {
    server.SetDescriptions(
        {Described(1, serving), Described(2, serving), Described(3, v1::MODEL_STATE_FAILED)});
    EXPECT_EQ(version(0), 2);
    EXPECT_EQ(version(1), 1);
    EXPECT_EQ(version(3), 3);
  }
  server.SetDescriptions(
      {Described(1, v1::MODEL_STATE_FAILED), Described(2, v1::MODEL_STATE_LOADING)});
  EXPECT_EQ(version(0), 2) << "none serves";
  const absl::Status unknown = client->Describe("toy", 3).status();
  EXPECT_TRUE(absl::IsNotFound(unknown)) << unknown;
  EXPECT_THAT(unknown.message(), HasSubstr("toy of version 3"));
  EXPECT_TRUE(absl::IsNotFound(client->Describe("nobody").status()));
}

TEST(ClientTest, EmbedsNothing) {
  const FakeServer server;
  const absl::StatusOr<Tensor> embeddings = Connect(server)->Embed({});
  ASSERT_TRUE(embeddings.ok()) << embeddings.status();
  EXPECT_TRUE(embeddings->values.empty());
}

TEST(ClientTest, ScalesQuantizedEmbeddings) {
  const FakeServer server;
  const auto embeddings =
      Connect(server)->Embed({"a", "bcd"}, {.pooled = {.format = EmbeddingFormat::kInt8}});
  ASSERT_TRUE(embeddings.ok()) << embeddings.status();
  EXPECT_THAT(embeddings->shape, ElementsAre(2, 4));
  EXPECT_THAT(embeddings->values, ElementsAre(3, 0, 0, 0, 5, 0, 0, 0));
}

TEST(ClientTest, EmbedTakesNoChunks) {
  const FakeServer server;
  const auto embeddings = Connect(server)->Embed({"a"}, {.pooled = {.chunk_tokens = 2}});
  EXPECT_TRUE(absl::IsInvalidArgument(embeddings.status())) << embeddings.status();
  EXPECT_TRUE(server.encode_requests().empty());
}

TEST(ClientTest, EncodesTextAndIds) {
  const FakeServer server;
  const absl::StatusOr<EncodeResult> result = Connect(server)->Encode(
      {.sequences = {"a", TokenIds{.token_ids = {7, 8}, .attention_mask = {1, 0}}},
       .last_hidden_state = true,
       .pooled = PooledOptions{.pooling = Pooling::kCls, .normalize = false, .dims = 3},
       .token_ids = true,
       .dtype = DType::kBf16,
       .truncation = Truncation::kRight,
       .priority = 5});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->last_hidden_state.shape, ElementsAre(5, 4));
  EXPECT_EQ(result->sequences[0].tokens, 3);
  EXPECT_THAT(result->sequences[1].token_ids, ElementsAre(7, 8));
  EXPECT_EQ(result->timings.compute_us, 300);

  const v1::EncodeRequest sent = server.encode_requests().at(0);
  EXPECT_THAT(sent.sequences().sequences(1).ids().attention_mask(), ElementsAre(true, false));
  EXPECT_EQ(sent.outputs().pooled().pooling(), v1::POOLING_CLS);
  EXPECT_TRUE(sent.outputs().pooled().has_normalize());
  EXPECT_FALSE(sent.outputs().pooled().normalize());
  EXPECT_EQ(sent.outputs().pooled().dims(), 3);
  EXPECT_EQ(sent.outputs().dtype(), v1::DTYPE_BF16);
  EXPECT_EQ(sent.truncation(), v1::TRUNCATION_RIGHT);
  EXPECT_EQ(sent.priority(), 5);
}

TEST(ClientTest, TakesAnswersAboveTheLimitThatIsGrpcsDefault) {
  constexpr size_t kBytes = 400'000;
  const FakeServer server;
  const absl::StatusOr<EncodeResult> result =
      Connect(server)->Encode({.sequences = {std::string(kBytes, 'x')}, .last_hidden_state = true});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->last_hidden_state.values.size() * sizeof(float), size_t{4} << 20);
}

TEST(ClientTest, EmbedNamesAVersion) {
  const FakeServer server;
  EXPECT_TRUE(Connect(server)->Embed({"a"}, {.model_version = 2}).ok());
  EXPECT_EQ(server.encode_requests().back().model_version(), "2");
}

TEST(ClientTest, GivesTheServersError) {
  FakeServer server;
  server.FailAll(absl::InvalidArgumentError("sequence 3 has 600 tokens, the limit is 512"));
  const absl::Status status = Connect(server)->Embed({"a"}, {.model = "toy"}).status();
  EXPECT_EQ(status, absl::InvalidArgumentError("sequence 3 has 600 tokens, the limit is 512"));

  server.FailAll(absl::OkStatus());
  EXPECT_TRUE(Connect(server)->Embed({"a"}).ok());
}

TEST(ClientTest, TriesAgainWhenTheQueueIsFull) {
  FakeServer server;
  server.FailNext(2, absl::ResourceExhaustedError("the queue is full"));
  EXPECT_TRUE(Connect(server, absl::Seconds(20), 4)->Embed({"a"}).ok());
  EXPECT_EQ(server.encode_requests().size(), 3);

  server.FailNext(1, absl::ResourceExhaustedError("the queue is full"));
  EXPECT_TRUE(absl::IsResourceExhausted(Connect(server)->Embed({"a"}).status()));
}

TEST(ClientTest, GivesUpAtTheTimeout) {
  FakeServer server;
  server.Stall();
  const auto client = Connect(server, absl::Milliseconds(100));
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->Embed({"a"}).status()));
}

// It would take up to ten seconds to stop.
TEST(ClientTest, LeavesGrpcRunning) {
  {
    const FakeServer server;
    EXPECT_TRUE(Connect(server)->Embed({"a"}).ok());
  }
  EXPECT_EQ(grpc_is_initialized(), 1);
}

TEST(ClientTest, NamesTheFlagThatALargeRequestIsBeyond) {
  const FakeServer server;  // with the limit that is gRPC's default, 4 MiB
  const absl::Status status = Connect(server)->Embed({std::string(5 << 20, 'x')}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("larger than the server's --max_request_bytes: "));
  EXPECT_THAT(status.message(), HasSubstr("vs. 4194304)"));
}

TEST(ClientTest, AUrlIsNoTarget) {
  for (const char* target : {"http://127.0.0.1:8001", "https://attendant"}) {
    const absl::Status status = Client::Connect({.target = target}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("gRPC port")) << target;
  }
}

TEST(ClientTest, SaysThatTheServerIsUnreachable) {
  const ClosedPort port;
  const absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect({.target = absl::StrCat("127.0.0.1:", port.number())});
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE(absl::IsUnavailable((*client)->Embed({"a"}).status()));
  EXPECT_TRUE(absl::IsUnavailable((*client)->Health().status()));
}

TEST(ClientTest, RefusesBytesThatAreNoAnswer) {
  FakeServer server;
  server.SetModules({"attn"});
  server.GarbleAnswers();
  const auto client = Connect(server);
  const absl::Status no_answer = absl::InternalError("the bytes of the answer are no answer");
  EXPECT_EQ(client->Embed({"a"}, {.model = "toy"}).status(), no_answer);
  EXPECT_EQ(client->Models().status(), no_answer);
  EXPECT_EQ(client->ListAttention().status(), no_answer);
  EXPECT_EQ(client->Health().status(), no_answer);
  EXPECT_EQ(client->WatchHealth("", [](ServingStatus) { return true; }), no_answer);
}

TEST(ClientTest, RefusesAnAnswerThatContradictsItself) {
  FakeServer server;
  server.CutTensors(10);
  const absl::Status status = Connect(server)->Embed({"a"}).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("[1, 4] came with 10 bytes"));
}

TEST(ClientTest, AServerThatCompressesForThoseWhoTakeItDoesNotForThisClient) {
  FakeServer server;
  server.Compress();
  const auto result = Connect(server)->Embed({std::string(10'000, 'a')});
  EXPECT_TRUE(result.ok()) << result.status();
}

TEST(ClientTest, RefusesAnAnswerWithTooFewSequences) {
  FakeServer server;
  server.LoseASequence();
  const absl::Status status = Connect(server)->Embed({"a", "b"}).status();
  EXPECT_EQ(status, absl::InternalError("the answer has 1 sequences, the request 2"));
}

// A proxy of the environment cannot reach this machine's own loopback.
TEST(ClientTest, UsesNoProxyForLoopback) {
  const FakeServer server;
  ASSERT_EQ(setenv("http_proxy", "http://127.0.0.1:9", /*overwrite=*/1), 0);
  const absl::Status status = Connect(server)->Embed({"a"}).status();
  unsetenv("http_proxy");
  EXPECT_TRUE(status.ok()) << status;
}

TEST(ClientTest, RefusesAServicesNameThatIsNotUtf8) {
  const FakeServer server;
  const auto client = Connect(server);
  const absl::Status error = absl::InvalidArgumentError("service is not valid UTF-8 at byte 1");
  EXPECT_EQ(client->Health("a\xff").status(), error);
  EXPECT_EQ(client->WatchHealth("a\xff", [](ServingStatus) { return true; }), error);
}

TEST(ClientTest, RefusesTextThatIsNotUtf8) {
  const FakeServer server;
  const absl::Status status = Connect(server)->Embed({"fine", "a\xff"}).status();
  EXPECT_EQ(status, absl::InvalidArgumentError("sequence 1 is not valid UTF-8 at byte 1"));
  EXPECT_TRUE(server.encode_requests().empty());
}

TEST(ClientTest, WantsAModelsNameWhenThereAreSeveral) {
  FakeServer server;
  server.SetModels({"toy", "other"});
  const absl::Status status = Connect(server)->Embed({"a"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("other, toy"));
  server.SetModels({});
  EXPECT_TRUE(absl::IsNotFound(Connect(server)->Embed({"a"}).status()));
}

TEST(ClientTest, AnUnloadedModelDoesNotCountBesideAnother) {
  FakeServer server;
  server.SetModels({"toy", "other"});
  server.Unload("other");
  EXPECT_EQ(Connect(server)->OnlyModel().value_or("?"), "toy");
  server.SetModels({"other"});
  EXPECT_EQ(Connect(server)->OnlyModel().value_or("?"), "other");
}

TEST(ClientTest, ListsModels) {
  FakeServer server;
  server.SetModels({"toy", "slow"});
  const absl::StatusOr<std::vector<ModelInfo>> models = Connect(server)->Models();
  ASSERT_TRUE(models.ok()) << models.status();
  ASSERT_EQ(models->size(), 2);
  EXPECT_EQ((*models)[0].state, "ready");
  EXPECT_EQ((*models)[0].pooling, "mean");
  EXPECT_EQ((*models)[0].hidden, 4);
  EXPECT_EQ((*models)[1].state, "loading");
}

TEST(ClientTest, TellsHealth) {
  FakeServer server;
  const auto client = Connect(server);
  EXPECT_EQ(*client->Health(), ServingStatus::kServing);
  server.SetServing(false);
  EXPECT_EQ(*client->Health("toy"), ServingStatus::kNotServing);
  EXPECT_TRUE(absl::IsNotFound(client->Health("nobody").status()));
}

TEST(ClientTest, WatchesHealth) {
  const FakeServer server;
  const auto client = Connect(server);
  std::vector<ServingStatus> seen;
  const auto record = [&](ServingStatus status) {
    seen.push_back(status);
    return false;
  };
  EXPECT_TRUE(client->WatchHealth("", record).ok());
  EXPECT_THAT(seen, ElementsAre(ServingStatus::kServing));
  EXPECT_TRUE(absl::IsUnavailable(client->WatchHealth("", [](ServingStatus) { return true; })));
  EXPECT_TRUE(absl::IsNotFound(client->WatchHealth("nobody", record)));
}

TEST(ClientTest, RefusesTlsFilesItCannotUse) {
  const TempDirectory folder;
  const std::string empty = folder / "empty.pem";
  WriteFile(empty, "");
  EXPECT_EQ(Client::Connect({.tls = {.ca_file = empty}}).status(),
            absl::InvalidArgumentError(absl::StrCat("cannot read the PEM file ", empty)));
  EXPECT_TRUE(
      absl::IsInvalidArgument(Client::Connect({.tls = {.ca_file = "/nonexistent.pem"}}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(Client::Connect({.tls = {.cert_file = "cert.pem"}}).status()));
}

TEST(ClientTest, SendsItsApiKey) {
  const TempDirectory folder;
  WriteFile(folder / "key", "0123456789abcdef\n");
  const FakeServer server;
  const auto client = Client::Connect(
      {.target = server.address(), .api_key_file = folder / "key", .max_attempts = 2});
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_TRUE((*client)->Embed({"a"}).ok());
  const auto metadata = server.encode_metadata().at(0);
  EXPECT_EQ(metadata.at("authorization"), "Bearer 0123456789abcdef");
  EXPECT_FALSE(metadata.contains("traceparent"));
}

TEST(ClientTest, EveryCallIsASpanOfTheTrace) {
  constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
  const FakeServer server;
  const auto client = Client::Connect({.target = server.address(), .trace_id = kTrace});
  ASSERT_TRUE(client.ok()) << client.status();
  std::set<std::string> parents, ids;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE((*client)->Embed({"a"}).ok());
  for (const auto& metadata : server.encode_metadata()) {
    EXPECT_THAT(metadata.at("traceparent"),
                ::testing::MatchesRegex(absl::StrCat("00-", kTrace, "-[0-9a-f]{16}-01")));
    EXPECT_FALSE(metadata.contains("authorization"));
    parents.insert(metadata.at("traceparent"));
    ids.insert(metadata.at("x-request-id"));
  }
  EXPECT_EQ(parents.size(), 3u);
  EXPECT_EQ(ids.size(), 3u);
}

TEST(ClientTest, WrongMetadataIsRefused) {
  const TempDirectory folder;
  for (const std::string path = folder / "key"; const char* text : {"", "  \n", "0123\x01key"}) {
    WriteFile(path, text);
    EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect({.api_key_file = path}).status())) << text;
  }
  for (const char* id : {"1", "4BF92F3577B34DA6A3CE929D0E0E4736",
                         "00000000000000000000000000000000", "4bf92f3577b34da6a3ce929d0e0e47367"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect({.trace_id = id}).status())) << id;
  }
}

}  // namespace
}  // namespace attendant::client
