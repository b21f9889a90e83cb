// SPDX-License-Identifier: Apache-2.0
// Scores of pairs by a model that has vectors of tokens: MaxSim.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/heads/max_sim.h"
#include "tests/server/encoder_rpc_fixture.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr char kModel[] = "colbert";
constexpr char kQuery[] = "how tall is the tower?";
// Of the second, the punctuation has no vectors.
const std::vector<std::string> kDocuments = {"it rains", "it has 330 metres.", "", "prices fell"};
constexpr int64_t kDims = 12;
constexpr size_t kQueryTokens = 14;

InProcessServer::Options ServeColbert() {
  InProcessServer::Options options;
  options.models = {{kModel, "tests/golden/colbert/stanford_bert"}};
  return options;
}

v1::EncodeRequest PairsRequest(const std::vector<std::pair<std::string, std::string>>& pairs) {
  v1::EncodeRequest request;
  request.set_model(kModel);
  for (const auto& [first, second] : pairs) {
    v1::TextPair& pair = *request.mutable_sequences()->add_sequences()->mutable_pair();
    pair.set_first(first);
    pair.set_second(second);
  }
  request.mutable_outputs()->mutable_scores();
  return request;
}

v1::EncodeRequest TowerRequest() {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& document : kDocuments) pairs.emplace_back(kQuery, document);
  return PairsRequest(pairs);
}

class LateScoresTest : public EncoderRpcTest {
 protected:
  LateScoresTest() : EncoderRpcTest(ServeColbert()) {}

  std::vector<float> Vectors(const std::string& text, const std::string& prompt) {
    v1::EncodeRequest request;
    request.set_model(kModel);
    request.set_prompt_name(prompt);
    request.mutable_sequences()->add_sequences()->set_text(text);
    request.mutable_outputs()->mutable_multi_vector();
    return Floats(Encode(request).multi_vectors());
  }
  float Expected(const std::string& query, const std::string& document) {
    return MaxSim(Vectors(query, "query"), Vectors(document, "document"), kDims);
  }
};

TEST_F(LateScoresTest, AreThoseOfTheTextsOwnVectors) {
  const v1::EncodeResponse response = Encode(TowerRequest());
  const std::vector<float> scores = Floats(response.scores());
  ASSERT_EQ(scores.size(), kDocuments.size());
  ASSERT_EQ(response.sequences_size(), static_cast<int>(kDocuments.size()));
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_EQ(scores[i], Expected(kQuery, kDocuments[i])) << kDocuments[i];
  }
  EXPECT_NE(scores[0], scores[1]);
  EXPECT_FALSE(response.has_multi_vectors());
  EXPECT_FALSE(response.has_pooled());
}

TEST_F(LateScoresTest, EachPairHasItsQuery) {
  const std::vector<float> scores =
      Floats(Encode(PairsRequest({{kQuery, "it rains"}, {"prices", "it rains"}, {kQuery, "again"}}))
                 .scores());
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_EQ(scores[0], Expected(kQuery, "it rains"));
  EXPECT_EQ(scores[1], Expected("prices", "it rains"));
  EXPECT_EQ(scores[2], Expected(kQuery, "again"));
}

TEST_F(LateScoresTest, AQueryIsComputedOnce) {
  const v1::EncodeResponse response = Encode(TowerRequest());
  int64_t tokens = kQueryTokens;
  for (const v1::SequenceInfo& info : response.sequences()) tokens += info.tokens();
  EXPECT_EQ(server_.Metric(R"(attendant_tokens_total{kind="valid",model="colbert"})"),
            static_cast<double>(tokens));
}

TEST_F(LateScoresTest, AreOfPairsOfTexts) {
  v1::EncodeRequest request = TowerRequest();
  request.mutable_sequences()->add_sequences()->set_text("alone");
  EXPECT_THAT(Refusal(request), HasSubstr("sequence 4 is no pair of texts"));
}

TEST_F(LateScoresTest, ComeAlone) {
  v1::EncodeRequest request = TowerRequest();
  request.mutable_outputs()->mutable_multi_vector();
  EXPECT_THAT(Refusal(request), HasSubstr("ask for other outputs"));
  request = TowerRequest();
  request.mutable_outputs()->mutable_pooled();
  EXPECT_THAT(Refusal(request), HasSubstr("ask for other outputs"));
  request = TowerRequest();
  request.set_prompt_name("document");
  EXPECT_THAT(Refusal(request), HasSubstr("prompt_name"));
}

TEST_F(LateScoresTest, HaveNoActivation) {
  v1::EncodeRequest request = TowerRequest();
  v1::ScoreOutput& scores = *request.mutable_outputs()->mutable_scores();
  const std::vector<float> sums = Floats(Encode(request).scores());
  scores.set_activation(v1::SCORE_ACTIVATION_NONE);
  EXPECT_EQ(Floats(Encode(request).scores()), sums);
  for (const auto other : {v1::SCORE_ACTIVATION_SIGMOID, v1::SCORE_ACTIVATION_SOFTMAX}) {
    scores.set_activation(other);
    EXPECT_THAT(Refusal(request), HasSubstr("outputs.scores.activation must be NONE or unset"));
  }
}

TEST_F(LateScoresTest, ATextThatIsTooLongIsNamedByItsPair) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "fox ";
  v1::EncodeRequest request = PairsRequest({{kQuery, "it rains"}, {kQuery, text}});
  EXPECT_TRUE(Encode(request).sequences(1).truncated());
  request.set_truncation(v1::TRUNCATION_NONE);
  EXPECT_THAT(Refusal(request), HasSubstr("sequence 1: "));
  request = PairsRequest({{"tower", "it rains"}, {text, "it rains"}});
  request.set_truncation(v1::TRUNCATION_NONE);
  EXPECT_THAT(Refusal(request), HasSubstr("sequence 1: "));
}

TEST(LateScoresLimitTest, VectorsCountBeforeTheyAreMade) {
  // A vector of 12 values and its token's place.
  constexpr int64_t kVectorBytes = kDims * 4 + 4;
  InProcessServer::Options options = ServeColbert();
  // The query and "", which is [CLS], its marker and [SEP].
  options.flags.encode.max_response_bytes = kVectorBytes * static_cast<int64_t>(kQueryTokens + 3);
  InProcessServer server(options);
  server.AwaitReady();
  server.Encode(PairsRequest({{kQuery, ""}}));
  EXPECT_THAT(server.Refusal(PairsRequest({{kQuery, ""}, {kQuery, ""}})),
              HasSubstr("the vectors of the texts take 1040 bytes"));
}

}  // namespace
}  // namespace attendant
