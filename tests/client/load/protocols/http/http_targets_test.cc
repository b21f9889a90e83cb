// SPDX-License-Identifier: Apache-2.0
// What the protocols over HTTP ask a server, and what they send it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/load/payload.h"
#include "client/load/protocols/http/http_load.h"
#include "client/load/protocols/protocols.h"
#include "tests/client/http/canned_server.h"
#include "tests/support/checkpoint.h"

namespace attendant::client {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// "m", which takes two texts at a time.
constexpr char kMetadata[] =
    R"({"name":"m","platform":"p","inputs":[{"name":"text","datatype":"BYTES","shape":["-1",1]}]})";
constexpr char kConfig[] = R"({"max_batch_size":2,"unheard_of":{"a":[1]}})";
constexpr char kInfo[] = R"({"model_id":"org/m","max_input_length":3,"prompts":null})";
constexpr char kTeiEmbed[] = R"({"inputs":["ab","cd"],"truncate":true})";
constexpr char kTeiRerank[] = R"({"query":"ab","texts":["ab","cd"],"truncate":true})";
constexpr char kOpenAi[] = R"({"encoding_format":"base64","input":["ab","cd"],"model":"m"})";
constexpr char kCohereEmbed[] =
    R"({"embedding_types":["base64"],"input_type":"search_document","model":"m","texts":["ab","cd"]})";
constexpr char kCohereRerank[] = R"({"documents":["ab","cd"],"model":"m","query":"ab"})";
constexpr char kRanks[] = R"([{"index":1,"score":0.5},{"index":0,"score":0.25}])";
constexpr char kKserveJson[] =
    R"({"inputs":[{"data":["ab","cd"],"datatype":"BYTES","name":"text","shape":[2,1]}]})";
constexpr char kBinaryJson[] =
    R"({"inputs":[{"datatype":"BYTES","name":"text","parameters":{"binary_data_size":12},)"
    R"("shape":[2,1]}],"parameters":{"binary_data_output":true}})";
// Of outputs with so many sequences.
std::string KserveAnswer(int sequences) {
  return absl::StrCat(R"({"model_name":"shape","outputs":[{"name":"e","shape": [)", sequences,
                      R"(,1],"datatype":"FP32"},{"name":"f","shape":[9,1]}]})");
}

const std::string& BinaryBody() {
  static const std::string* const body =
      new std::string(std::string(kBinaryJson) + std::string("\2\0\0\0ab\2\0\0\0cd", 12));
  return *body;
}

class HttpTargetsTest : public ::testing::Test {
 protected:
  void Serve(const std::map<std::string, std::string>& answers) {
    server_ = std::make_unique<CannedServer>(answers);
  }

  // One request of two texts, in this order: they are shuffled.
  TargetSpec Spec() const {
    TargetSpec spec;
    spec.connect.target = absl::StrCat("127.0.0.1:", server_->port());
    spec.model = "m";
    spec.payload.texts = {"ab", "cd"};
    spec.payload.batch = 2;
    while (MakePayloads(spec.payload)[0].texts[0] != "ab") ++spec.payload.seed;
    return spec;
  }

  static CallResult Ask(const absl::StatusOr<Target>& target) {
    CallResult answer;
    EXPECT_TRUE(target.ok()) << target.status();
    if (!target.ok()) return answer;
    absl::Notification done;
    target->caller->Start(0, 0, [&](const CallResult& result) {
      answer = result;
      done.Notify();
    });
    done.WaitForNotification();
    EXPECT_EQ(answer.code, grpc::StatusCode::OK) << answer.message;
    return answer;
  }

  std::unique_ptr<CannedServer> server_;
};

TEST_F(HttpTargetsTest, KserveSendsTensorsAsBytes) {
  Serve({{"/v2/models/m", CannedAnswer(200, kMetadata)},
         {"/v2/models/m/config", CannedAnswer(200, kConfig)},
         {BinaryBody(), CannedAnswer(200, KserveAnswer(2) + "\"shape\":[7")}});
  const absl::StatusOr<Target> target = MakeKserveHttpTarget(Spec());
  EXPECT_EQ(Ask(target).sequences, 2);
  EXPECT_THAT(server_->last_head(),
              AllOf(StartsWith("POST /v2/models/m/infer HTTP/1.1\r\n"),
                    HasSubstr("\r\nContent-Type: application/octet-stream\r\n"),
                    HasSubstr(absl::StrCat(
                        "\r\nInference-Header-Content-Length: ", sizeof(kBinaryJson) - 1, "\r\n")),
                    Not(HasSubstr("application/json"))));
}

TEST_F(HttpTargetsTest, KserveSendsJsonWhereItIsAskedTo) {
  Serve({{"/v2/models/m", CannedAnswer(200, kMetadata)},
         {"/v2/models/m/config", CannedAnswer(200, kConfig)},
         {kKserveJson, CannedAnswer(200, KserveAnswer(2))}});
  TargetSpec spec = Spec();
  spec.json_tensors = true;
  EXPECT_EQ(Ask(MakeKserveHttpTarget(spec)).sequences, 2);
  EXPECT_THAT(server_->last_head(), AllOf(HasSubstr("\r\nContent-Type: application/json\r\n"),
                                          Not(HasSubstr("Inference-Header"))));
  spec.payload.texts = {"a", "b", "c"};
  spec.payload.batch = 3;
  EXPECT_THAT(std::string(MakeKserveHttpTarget(spec).status().message()),
              HasSubstr("--batch 3: the limit of m is 2"));
}

TEST_F(HttpTargetsTest, KserveNamesTheVersionInEachPath) {
  Serve({{"/v2/models/m/versions/3", CannedAnswer(200, kMetadata)},
         {"/v2/models/m/versions/3/config", CannedAnswer(200, kConfig)},
         {BinaryBody(), CannedAnswer(200, KserveAnswer(2))}});
  TargetSpec spec = Spec();
  spec.model_version = 3;
  EXPECT_EQ(Ask(MakeKserveHttpTarget(spec)).sequences, 2);
  EXPECT_THAT(server_->last_head(), StartsWith("POST /v2/models/m/versions/3/infer HTTP/1.1\r\n"));
}

// The configuration is Triton's addition to the protocol.
TEST_F(HttpTargetsTest, KserveDoesWithoutConfigurationWhereTheServerHasNone) {
  for (const int code : {400, 404, 405, 501, 301, 408, 409, 422, 503}) {
    const bool has_no_path = code == 400 || code == 404 || code == 405 || code == 501;
    Serve({{"/v2/models/m", CannedAnswer(200, R"({"name":"m","inputs":[{"name":"text",)"
                                              R"("datatype":"BYTES","shape":[1]}]})")},
           {"/v2/models/m/config", CannedAnswer(code, "x")},
           {R"({"inputs":[{"data":["ab"],"datatype":"BYTES","name":"text","shape":[1]}]})",
            CannedAnswer(200, "{}")}});
    TargetSpec spec = Spec();
    spec.json_tensors = true;
    spec.payload.texts = {"ab"};
    spec.payload.batch = 1;
    const absl::StatusOr<Target> target = MakeKserveHttpTarget(spec);
    if (has_no_path) {
      EXPECT_EQ(Ask(target).sequences, 1);
    } else {
      EXPECT_EQ(target.status().message(), absl::StrCat("HTTP ", code, ": x"));
    }
  }
}

TEST_F(HttpTargetsTest, KserveTellsWhatAServerDoesNot) {
  Serve({{"/v2/models/a%2Fb%20c", CannedAnswer(404, "no such model")},
         {"/v2/models/page", CannedAnswer(200, "<html>")},
         {"/v2/models/long", CannedAnswer(200, std::string(5 << 20, ' '))}});
  TargetSpec spec = Spec();
  spec.model = "a/b c";
  absl::Status status = MakeKserveHttpTarget(spec).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(status.message(), "HTTP 404: no such model");
  spec.model = "page";
  status = MakeKserveHttpTarget(spec).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("description of the model"));
  spec.model = "long";  // longer than is read
  status = MakeKserveHttpTarget(spec).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("description of the model")));
}

TEST_F(HttpTargetsTest, TeiEmbeds) {
  Serve({{"/info", CannedAnswer(200, kInfo)}, {kTeiEmbed, CannedAnswer(200, "[[1],[2]]")}});
  const absl::StatusOr<Target> target = MakeTeiHttpTarget(Spec());
  EXPECT_EQ(Ask(target).sequences, 2);
  EXPECT_EQ(target->model, "org/m");
  EXPECT_THAT(server_->last_head(),
              AllOf(StartsWith("POST /embed "), HasSubstr("\r\nx-model: m\r\n")));
  TargetSpec spec = Spec();
  spec.model = "";
  EXPECT_EQ(Ask(MakeTeiHttpTarget(spec)).sequences, 2);
  EXPECT_THAT(server_->last_head(), Not(HasSubstr("x-model")));
  spec.model = "a\r\nb";
  EXPECT_TRUE(absl::IsFailedPrecondition(MakeTeiHttpTarget(spec).status()));
}

TEST_F(HttpTargetsTest, TeiLengthsKeepToTheModel) {
  const json body{{"inputs", json::array({SpellOut({0, 0, 0})})}, {"truncate", true}};
  Serve({{"/info", CannedAnswer(200, kInfo)}, {body.dump(), CannedAnswer(200, "[[1]]")}});
  TargetSpec spec = Spec();
  spec.payload.texts = {};
  spec.payload.batch = 1;
  spec.payload.vocab = 1;  // no other id than 0
  spec.payload.lengths = *LengthDistribution::Parse("fixed:9");
  EXPECT_EQ(Ask(MakeTeiHttpTarget(spec)).sequences, 1);
}

TEST_F(HttpTargetsTest, TeiReranks) {
  Serve({{"/info", CannedAnswer(200, kInfo)}, {kTeiRerank, CannedAnswer(200, kRanks)}});
  EXPECT_EQ(Ask(MakeTeiRerankTarget(Spec())).sequences, 2);
  EXPECT_THAT(server_->last_head(), StartsWith("POST /rerank "));
}

TEST(TokensInTest, TakesTheLastFieldOfTheName) {
  const HttpCaller::Measure measure = TokensIn("tokens");
  CallResult result;
  measure(R"({"data":[1]})", result);
  EXPECT_EQ(result.tokens, std::nullopt);
  measure(R"({"data":[{"tokens":1}],"usage":{"tokens" : 72}})", result);
  EXPECT_EQ(result.tokens, 72);
}

TEST_F(HttpTargetsTest, TeiTellsWhatIsNoTei) {
  for (const char* info : {"[]", "{", R"({"model_id":1,"max_input_length":3})",
                           R"({"model_id":"m","max_input_length":"3"})"}) {
    Serve({{"/info", CannedAnswer(200, info)}});
    EXPECT_TRUE(absl::IsInternal(MakeTeiHttpTarget(Spec()).status())) << info;
  }
}

TEST_F(HttpTargetsTest, CohereEmbedsAndReranks) {
  Serve({{kCohereEmbed,
          CannedAnswer(
              200, R"({"texts":["\"base64\":[]","cd"],"embeddings":{"base64" : ["AA==", "BB"]},)"
                   R"("meta":{"billed_units":{"input_tokens":11}}})")},
         {kCohereRerank, CannedAnswer(200, absl::StrCat(R"({"results":)", kRanks,
                                                        R"(,"usage": {"total_tokens": 12}})"))}});
  const CallResult embedded = Ask(MakeCohereTarget(Spec()));
  EXPECT_EQ(embedded.sequences, 2);
  EXPECT_EQ(embedded.tokens, 11);
  EXPECT_THAT(server_->last_head(), StartsWith("POST /v2/embed "));
  const CallResult ranked = Ask(MakeCohereRerankTarget(Spec()));
  EXPECT_EQ(ranked.sequences, 2);
  EXPECT_EQ(ranked.tokens, 12);
  EXPECT_THAT(server_->last_head(), StartsWith("POST /v2/rerank "));
}

TEST_F(HttpTargetsTest, OpenAiEmbeds) {
  Serve({{kOpenAi,
          CannedAnswer(
              200, R"({"data":[{"object":"embedding","embedding":"AA=="},)"
                   R"({"object":"embedding","embedding":"BB=="}],"usage":{"total_tokens":5}})")}});
  const CallResult result = Ask(MakeOpenAiTarget(Spec()));
  EXPECT_EQ(result.sequences, 2);
  EXPECT_EQ(result.tokens, 5);
}

TEST_F(HttpTargetsTest, AllSendTheApiKeyAndTellWhetherTheySendWords) {
  const std::string answer = R"({"data":[{"embedding":"AA"},{"embedding":"BB"}],)"
                             R"("embeddings":{"base64":["AA==","BB"]}})";
  Serve({{kOpenAi, CannedAnswer(200, answer)},
         {kCohereEmbed, CannedAnswer(200, answer)},
         {"/info", CannedAnswer(200, kInfo)},
         {kTeiRerank, CannedAnswer(200, kRanks)},
         {"/v2/models/m", CannedAnswer(200, kMetadata)},
         {"/v2/models/m/config", CannedAnswer(200, kConfig)},
         {BinaryBody(), CannedAnswer(200, KserveAnswer(2))}});
  const TempDirectory folder;
  WriteFile(folder / "key", "a-key-of-16-letters\n");
  TargetSpec spec = Spec();
  spec.connect.api_key_file = folder / "key";
  const auto sends_words = [&](absl::StatusOr<Target> (*make)(const TargetSpec&)) {
    const absl::StatusOr<Target> target = make(spec);
    EXPECT_TRUE(target.ok()) << target.status();
    EXPECT_THAT(server_->last_head(),
                HasSubstr("\r\nAuthorization: Bearer a-key-of-16-letters\r\n"));
    return target.ok() && target->sends_words;
  };
  EXPECT_FALSE(sends_words(MakeOpenAiTarget));
  EXPECT_TRUE(sends_words(MakeCohereTarget));
  EXPECT_TRUE(sends_words(MakeTeiRerankTarget));
  EXPECT_TRUE(sends_words(MakeKserveHttpTarget));
  spec.connect.api_key_file = "/nonexistent";
  EXPECT_TRUE(absl::IsInvalidArgument(MakeOpenAiTarget(spec).status()));
}

// Each request has two texts.
TEST_F(HttpTargetsTest, AnAnswerAboutAnotherNumberOfTextsIsAnError) {
  const auto expect = [](const absl::StatusOr<Target>& target, int sequences) {
    EXPECT_EQ(target.status(), absl::InternalError(absl::StrCat("the answer is about ", sequences,
                                                                " sequences, its request has 2")));
  };
  const auto serve = [this](const std::string& answer) {
    std::map<std::string, std::string> answers = {
        {"/info", CannedAnswer(200, kInfo)},
        {"/v2/models/m", CannedAnswer(200, kMetadata)},
        {"/v2/models/m/config", CannedAnswer(200, kConfig)},
        {BinaryBody(), CannedAnswer(200, answer)}};
    for (const char* body : {kTeiEmbed, kTeiRerank, kOpenAi, kCohereEmbed, kCohereRerank}) {
      answers[body] = CannedAnswer(200, answer);
    }
    Serve(answers);
  };
  serve("[[1,2]]");
  expect(MakeTeiHttpTarget(Spec()), 1);
  serve("[]");
  expect(MakeTeiHttpTarget(Spec()), 0);
  expect(MakeTeiRerankTarget(Spec()), 0);
  serve(R"({"data":[{"embedding":"AA"},{"embedding":"AA"},{"embedding":"AA"}]})");
  expect(MakeOpenAiTarget(Spec()), 3);
  serve(R"({"embeddings":{"base64":["AA"]}})");
  expect(MakeCohereTarget(Spec()), 1);
  serve(R"({"results":[{"index":1}]})");
  expect(MakeCohereRerankTarget(Spec()), 1);
  serve(KserveAnswer(1));
  expect(MakeKserveHttpTarget(Spec()), 1);
  serve(R"({"outputs":[{"shape":["3","1"]}]})");
  expect(MakeKserveHttpTarget(Spec()), 3);
  serve("{}");
  expect(MakeKserveHttpTarget(Spec()), 0);
}

TEST_F(HttpTargetsTest, ARefusedRequestIsKnownBeforeTheLoad) {
  Serve({{kOpenAi, CannedAnswer(400, "too long")}});
  const absl::Status status = MakeOpenAiTarget(Spec()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  TargetSpec spec = Spec();
  spec.connect.tls.enabled = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(MakeOpenAiTarget(spec).status()));
}

TEST(HttpLoadTest, CountsFieldsAndNoStrings) {
  EXPECT_EQ(CountFields("index", R"([{"index":0,"text":"\"index\":1"},{"index" : 1,"x":"index"}])"),
            2);
  EXPECT_EQ(CountFields("index", "[]"), 0);
  EXPECT_EQ(FromField("a", R"({"b":"a","a" : [1]})"), "[1]}");
  EXPECT_EQ(FromField("a", R"({"a")"), "");
}

TEST(HttpLoadTest, FindsTheLastNumberOfAField) {
  const auto tokens_of = [](absl::string_view body) {
    CallResult result;
    TokensIn("total_tokens")(body, result);
    return result.tokens;
  };
  EXPECT_EQ(tokens_of(R"({"text":"\"total_tokens\":3","usage":{"total_tokens":42,"x":7}})"), 42);
  EXPECT_EQ(tokens_of(R"({"total_tokens" : 5})"), 5);
  EXPECT_EQ(tokens_of(R"({"total_tokens":8)"), 8);
  EXPECT_EQ(tokens_of(R"({"prompt_tokens":8})"), std::nullopt);
  EXPECT_EQ(tokens_of(R"({"total_tokens":null})"), std::nullopt);
  EXPECT_EQ(tokens_of("{\"total_tokens\""), std::nullopt);
}

}  // namespace
}  // namespace attendant::client
