// SPDX-License-Identifier: Apache-2.0
// Late chunking: embeddings of spans, pooled from one pass over the whole sequence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "tests/server/encoder_rpc_fixture.h"
#include "tests/server/tiny_model.h"

namespace attendant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Spans = std::vector<std::pair<int32_t, int32_t>>;

constexpr size_t kHidden = 16;
const std::vector<int32_t> kIds = {kCls, kHello, kWorld, kUnk, kHello, kHello, kWorld, kSep};

v1::EncodeRequest Request() {
  v1::EncodeRequest request;
  request.set_model("tiny");
  request.mutable_outputs()->mutable_pooled();
  return request;
}

void Add(const std::vector<int32_t>& ids, const Spans& spans, v1::EncodeRequest& request,
         const std::vector<bool>& mask = {}) {
  v1::Sequence& sequence = AddIds(request, ids, mask);
  for (const auto& [begin, end] : spans) {
    sequence.mutable_spans()->add_begins(begin);
    sequence.mutable_spans()->add_ends(end);
  }
}

Spans SpansOf(const v1::SequenceInfo& info) {
  Spans spans;
  for (int i = 0; i < info.spans().begins_size(); ++i) {
    spans.emplace_back(info.spans().begins(i), info.spans().ends(i));
  }
  return spans;
}

// The mean of rows of `states`, divided by its length.
std::vector<double> UnitMean(const std::vector<float>& states, const std::vector<size_t>& rows) {
  std::vector<double> mean(kHidden);
  for (const size_t row : rows) {
    for (size_t j = 0; j < kHidden; ++j) mean[j] += double{states[row * kHidden + j]};
  }
  double squares = 0;
  for (const double value : mean) squares += value * value;
  for (double& value : mean) value /= std::sqrt(squares);
  return mean;
}

class SpansTest : public EncoderRpcTest {};

void ExpectNear(const std::vector<float>& pooled, size_t row, const std::vector<double>& expected) {
  for (size_t j = 0; j < kHidden; ++j) {
    EXPECT_NEAR(double{pooled[row * kHidden + j]}, expected[j], 1e-6) << row << ", " << j;
  }
}

TEST_F(SpansTest, EachIsTheMeanOfItsTokensInTheWholeSequence) {
  v1::EncodeRequest request = Request();
  request.mutable_outputs()->set_last_hidden_state(true);
  Add(kIds, {{0, 3}, {6, 8}, {2, 7}, {4, 5}}, request);
  const v1::EncodeResponse response = Encode(request);
  ASSERT_THAT(response.pooled().shape(), ElementsAre(4, kHidden));
  EXPECT_EQ(SpansOf(response.sequences(0)), (Spans{{0, 3}, {6, 8}, {2, 7}, {4, 5}}));
  const std::vector<float> states = Floats(response.last_hidden_state());
  const std::vector<float> pooled = Floats(response.pooled());
  ExpectNear(pooled, 0, UnitMean(states, {0, 1, 2}));
  ExpectNear(pooled, 1, UnitMean(states, {6, 7}));
  ExpectNear(pooled, 2, UnitMean(states, {2, 3, 4, 5, 6}));
  ExpectNear(pooled, 3, UnitMean(states, {4}));
}

TEST_F(SpansTest, AllTokensHaveTheBitsOfTheEmbedding) {
  for (const int32_t dims : {0, 5}) {
    v1::EncodeRequest request = Request();
    request.mutable_outputs()->mutable_pooled()->set_dims(dims);
    Add(kIds, {}, request);
    const std::string whole = Encode(request).pooled().data();
    request.clear_sequences();
    Add(kIds, {{0, 8}}, request);
    EXPECT_EQ(Encode(request).pooled().data(), whole);
    request.clear_sequences();
    request.mutable_outputs()->mutable_pooled()->set_chunk_tokens(8);
    Add(kIds, {}, request);
    EXPECT_EQ(Encode(request).pooled().data(), whole);
  }
}

TEST_F(SpansTest, ChunksAreFewAndEquallyLong) {
  v1::EncodeRequest request = Request();
  request.mutable_outputs()->mutable_pooled()->set_chunk_tokens(3);
  Add(kIds, {}, request);
  Add({kCls, kSep}, {}, request);
  Add(kIds, {{1, 2}}, request);
  const v1::EncodeResponse response = Encode(request);
  EXPECT_EQ(SpansOf(response.sequences(0)), (Spans{{0, 2}, {2, 5}, {5, 8}}));
  EXPECT_EQ(SpansOf(response.sequences(1)), (Spans{{0, 2}}));
  EXPECT_EQ(SpansOf(response.sequences(2)), (Spans{{1, 2}}));
  EXPECT_THAT(response.pooled().shape(), ElementsAre(5, kHidden));
}

TEST_F(SpansTest, HaveTheSameBitsInEveryBatch) {
  const std::vector<std::pair<std::vector<int32_t>, Spans>> sequences = {
      {kIds, {{0, 4}, {4, 8}}}, {{kCls, kHello, kSep}, {}}, {kIds, {{1, 7}}}};
  v1::EncodeRequest together = Request();
  std::string alone;
  for (const auto& [ids, spans] : sequences) {
    Add(ids, spans, together);
    v1::EncodeRequest one = Request();
    Add(ids, spans, one);
    alone += Encode(one).pooled().data();
  }
  const v1::EncodeResponse response = Encode(together);
  EXPECT_EQ(response.pooled().data(), alone);
  EXPECT_EQ(SpansOf(response.sequences(1)), (Spans{{0, 3}}));
}

TEST_F(SpansTest, LeaveMaskedTokensOut) {
  v1::EncodeRequest request = Request();
  request.mutable_outputs()->set_last_hidden_state(true);
  const std::vector<bool> mask = {true, false, true, true, false, false, true, true};
  Add(kIds, {{0, 4}, {4, 6}, {5, 8}}, request, mask);
  Add({kCls, kSep}, {{0, 1}, {0, 2}}, request, {false, false});
  const v1::EncodeResponse response = Encode(request);
  const std::vector<float> states = Floats(response.last_hidden_state());
  const std::vector<float> pooled = Floats(response.pooled());
  ASSERT_EQ(pooled.size(), 5 * kHidden);
  ExpectNear(pooled, 0, UnitMean(states, {0, 2, 3}));
  ExpectNear(pooled, 2, UnitMean(states, {6, 7}));
  for (const size_t row : {1u, 3u, 4u}) {
    const auto begin = pooled.begin() + static_cast<std::ptrdiff_t>(row * kHidden);
    EXPECT_THAT(std::vector<float>(begin, begin + kHidden), Each(0)) << row;
  }
}

TEST_F(SpansTest, AreQuantizedEachOnItsOwn) {
  v1::EncodeRequest request = Request();
  Add(kIds, {{0, 3}, {3, 8}}, request);
  const std::vector<float> numbers = Floats(Encode(request).pooled());
  request.mutable_outputs()->mutable_pooled()->set_dtype(v1::DTYPE_INT8);
  const v1::EncodeResponse response = Encode(request);
  ASSERT_THAT(response.pooled().shape(), ElementsAre(2, kHidden));
  const std::vector<float> scales = Floats(response.pooled_scales());
  ASSERT_EQ(scales.size(), 2u);
  for (size_t i = 0; i < 2 * kHidden; ++i) {
    const auto quantized = static_cast<float>(static_cast<int8_t>(response.pooled().data()[i]));
    EXPECT_NEAR(quantized * scales[i / kHidden], numbers[i], scales[i / kHidden] * 0.51f);
  }
}

TEST_F(SpansTest, AreOfTheTokensThatAreLeftOfAText) {
  v1::EncodeRequest request = Request();
  std::string text;
  for (int i = 0; i < 40; ++i) text += "hello ";
  request.mutable_sequences()->add_sequences()->set_text(text);
  request.mutable_outputs()->mutable_pooled()->set_chunk_tokens(16);
  const v1::SequenceInfo info = Encode(request).sequences(0);
  EXPECT_TRUE(info.truncated());
  EXPECT_EQ(SpansOf(info), (Spans{{0, 16}, {16, kTinyMaxTextTokens}}));
}

struct BadSpans {
  const char* name;
  std::function<void(v1::EncodeRequest&)> spoil;
  const char* message;
};

v1::TokenSpans& Own(v1::EncodeRequest& request) {
  return *request.mutable_sequences()->mutable_sequences(0)->mutable_spans();
}

void AddSpan(int32_t begin, int32_t end, v1::EncodeRequest& request) {
  Own(request).add_begins(begin);
  Own(request).add_ends(end);
}

const BadSpans kBadSpans[] = {
    {"BehindTheEnd", [](auto& r) { AddSpan(3, 9, r); },
     "sequence 0: spans[0] is [3, 9), the sequence has 8 tokens"},
    {"BeforeTheFirst", [](auto& r) { AddSpan(-1, 2, r); }, "spans[0] is [-1, 2)"},
    {"Empty",
     [](auto& r) {
       AddSpan(0, 1, r);
       AddSpan(4, 4, r);
     },
     "spans[1] is [4, 4), it has no token"},
    {"Backwards", [](auto& r) { AddSpan(4, 2, r); }, "spans[0] is [4, 2), it has no token"},
    {"Uneven", [](auto& r) { Own(r).add_begins(1); }, "spans has 1 begins and 0 ends"},
    {"None", [](auto& r) { Own(r); }, "sequence 0: spans is empty"},
    {"TooMany",
     [](auto& r) {
       for (int i = 0; i < 9; ++i) AddSpan(0, 1, r);
     },
     "sequence 0 has 9 spans, the limit is its 8 tokens"},
    {"NegativeChunks", [](auto& r) { r.mutable_outputs()->mutable_pooled()->set_chunk_tokens(-1); },
     "chunk_tokens is -1"},
    {"OneTokensPooling",
     [](auto& r) {
       AddSpan(0, 1, r);
       r.mutable_outputs()->mutable_pooled()->set_pooling(v1::POOLING_CLS);
     },
     "spans need the pooling mean, max"},
    {"LastTokensPooling",
     [](auto& r) {
       r.mutable_outputs()->mutable_pooled()->set_chunk_tokens(2);
       r.mutable_outputs()->mutable_pooled()->set_pooling(v1::POOLING_LAST);
     },
     "spans need the pooling mean, max"},
    {"NoEmbeddings",
     [](auto& r) {
       AddSpan(0, 1, r);
       r.mutable_outputs()->clear_pooled();
       r.mutable_outputs()->set_last_hidden_state(true);
     },
     "spans are of pooled embeddings"},
};

TEST_F(SpansTest, ThatAreWrongAreRefused) {
  for (const BadSpans& bad : kBadSpans) {
    v1::EncodeRequest request = Request();
    Add(kIds, {}, request);
    bad.spoil(request);
    SCOPED_TRACE(bad.name);
    EXPECT_THAT(Refusal(request), HasSubstr(bad.message));
  }
}

TEST_F(SpansTest, ReadTheStatesSixteenTimesAndNoMore) {
  const std::vector<int32_t> ids(32, kHello);
  v1::EncodeRequest request = Request();
  Add(ids, Spans(16, {0, 32}), request);
  EXPECT_THAT(Encode(request).pooled().shape(), ElementsAre(16, kHidden));
  AddSpan(0, 1, request);
  EXPECT_THAT(Refusal(request), HasSubstr("513 tokens, the limit is 16 times the 32 tokens"));
}

TEST(SpansLimitTest, AreCountedBeforeTheyAreMade) {
  InProcessServer::Options options;
  options.flags.encode.max_response_bytes = 4 * kHidden * sizeof(float);
  InProcessServer server(options);
  server.AwaitReady();
  v1::EncodeRequest request = Request();
  Add(kIds, {{0, 3}, {3, 8}}, request);
  server.Encode(request);
  AddSpan(0, 8, request);
  AddSpan(1, 2, request);
  EXPECT_THAT(server.Refusal(request), HasSubstr("the outputs asked for take 352 bytes"));
}

}  // namespace
}  // namespace attendant
