// SPDX-License-Identifier: Apache-2.0
// What a request asks for is what is computed: every option against its formula, by plain loops in
// double over the request's own numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attendant/v1/attention.pb.h"
#include "server/protocols/attention/operation.h"
#include "server/protocols/attention/plan.h"
#include "server/protocols/attention/to_proto.h"
#include "tests/server/protocols/attention/formula.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr float kTolerance = 2e-5f;

struct Case {
  const char* name;
  void (*ask)(v1::AttendRequest& request);
  void (*expect)(Formula& formula);
};

const Case kOptions[] = {
    {"Nothing", [](auto&) {}, [](auto&) {}},
    {"Scores",
     [](auto& r) { r.mutable_scaled_dot_product()->set_algorithm(v1::ATTENTION_ALGORITHM_SCORES); },
     [](auto&) {}},
    {"Scale", [](auto& r) { r.set_scale(2); },
     [](auto& f) { f.score = [](const Row& q, const Row& k) { return 2 * Dot(q, k); }; }},
    {"Causal", [](auto& r) { r.set_causal(true); },
     [](auto& f) { f.add = Sees([](int i, int j) { return j <= i; }); }},
    {"Window", [](auto& r) { r.mutable_local()->set_window(1); },
     [](auto& f) { f.add = Sees([](int i, int j) { return std::abs(i - j) <= 1; }); }},
    {"WindowOfNoNeighbours", [](auto& r) { r.mutable_local(); },
     [](auto& f) { f.add = Sees([](int i, int j) { return i == j; }); }},
    {"CausalWindow",
     [](auto& r) {
       r.mutable_local()->set_window(2);
       r.set_causal(true);
     },
     [](auto& f) { f.add = Sees([](int i, int j) { return j <= i && j >= i - 2; }); }},
    {"Strided", [](auto& r) { r.mutable_strided()->set_block(2); },
     [](auto& f) { f.add = Sees([](int i, int j) { return i / 2 == j / 2 || j % 2 == 1; }); }},
    {"StridedByItself", [](auto& r) { r.mutable_strided(); },  // blocks of sqrt(5), rounded up
     [](auto& f) { f.add = Sees([](int i, int j) { return i / 3 == j / 3 || j == 2; }); }},
    {"BoolMask",
     [](auto& r) {
       SetBools(*r.mutable_mask(), {kLen, kLen}, "1011001101000001111110010");
     },
     [](auto& f) {
       const std::string bits = "1011001101000001111110010";
       f.add =
           Sees([bits](int i, int j) { return bits[static_cast<size_t>(i * kLen + j)] == '1'; });
     }},
    {"AddedMask", [](auto& r) { Set(*r.mutable_mask(), Numbers(kLen, kLen, 4)); },
     [](auto& f) { f.add = [](int i, int j) { return Numbers(kLen, kLen, 4).at(i, j); }; }},
    {"MaskOfOneRow", [](auto& r) { Set(*r.mutable_mask(), Numbers(1, kLen, 4)); },
     [](auto& f) { f.add = [](int, int j) { return Numbers(1, kLen, 4).at(0, j); }; }},
    {"KeyPadding",
     [](auto& r) {
       SetBools(*r.mutable_key_padding_mask(), {1, kLen}, "11010");
     },
     [](auto& f) { f.add = Sees([](int, int j) { return j != 2 && j != 4; }); }},
    {"Alibi", [](auto& r) { r.mutable_alibi()->add_slopes(0.75f); },
     [](auto& f) { f.add = [](int i, int j) { return -0.75 * std::abs(i - j); }; }},
    {"AlibiOfThePaper", [](auto& r) { r.mutable_alibi(); },
     [](auto& f) { f.add = [](int i, int j) { return -std::exp2(-8) * std::abs(i - j); }; }},
};

const Case kPositions[] = {
    {"Sinusoidal", [](auto& r) { r.mutable_added()->mutable_sinusoidal(); },
     [](auto& f) {
       for (Matrix* rows : {&f.queries, &f.keys}) AddTable(*rows, Sinusoid(10000));
     }},
    {"SinusoidalToValue",
     [](auto& r) {
       r.mutable_added()->mutable_sinusoidal()->set_base(50);
       r.mutable_added()->set_to_value(true);
     },
     [](auto& f) {
       for (Matrix* rows : {&f.queries, &f.keys, &f.values}) AddTable(*rows, Sinusoid(50));
     }},
    {"Learned", [](auto& r) { Set(*r.mutable_added()->mutable_learned(), Numbers(7, kDim, 5)); },
     [](auto& f) {
       for (Matrix* rows : {&f.queries, &f.keys}) {
         AddTable(*rows, Learned);
       }
     }},
    {"LearnedToValue",
     [](auto& r) {
       Set(*r.mutable_added()->mutable_learned(), Numbers(kLen, kDim, 5));
       r.mutable_added()->set_to_value(true);
     },
     [](auto& f) {
       for (Matrix* rows : {&f.queries, &f.keys, &f.values}) {
         AddTable(*rows, Learned);
       }
     }},
    {"Rotary", [](auto& r) { r.mutable_rotary(); },
     [](auto& f) {
       for (Matrix* rows : {&f.queries, &f.keys}) Turn(*rows, 10000, false);
     }},
    {"RotaryInterleaved",
     [](auto& r) {
       r.mutable_rotary()->set_interleaved(true);
       r.mutable_rotary()->set_base(20);
     },
     [](auto& f) {
       for (Matrix* rows : {&f.queries, &f.keys}) Turn(*rows, 20, true);
     }},
};

const Case kKinds[] = {
    {"Additive",
     [](auto& r) {
       v1::AdditiveAttention& kind = *r.mutable_additive();
       Set(*kind.mutable_query_weight(), Numbers(3, kDim, 6));
       Set(*kind.mutable_key_weight(), Numbers(3, kDim, 7));
       SetVector(*kind.mutable_score_weight(), Numbers(1, 3, 8));
       SetVector(*kind.mutable_bias(), Numbers(1, 3, 9));
     },
     [](auto& f) {
       f.score = [](const Row& q, const Row& k) {
         double sum = 0;
         for (int unit = 0; unit < 3; ++unit) {
           const Matrix of_query = Numbers(3, kDim, 6), of_key = Numbers(3, kDim, 7);
           const double hidden = Dot({of_query, unit}, q) + Dot({of_key, unit}, k);
           sum += Numbers(1, 3, 8).at(0, unit) * std::tanh(hidden + Numbers(1, 3, 9).at(0, unit));
         }
         return sum;
       };
     }},
    {"LuongDot", [](auto& r) { r.mutable_luong(); }, [](auto& f) { f.score = Dot; }},
    {"LuongGeneral",
     [](auto& r) {
       r.mutable_luong()->set_score(v1::LUONG_SCORE_GENERAL);
       Set(*r.mutable_luong()->mutable_weight(), Numbers(kDim, kDim, 6));
     },
     [](auto& f) {
       f.queries = Product(f.queries, Numbers(kDim, kDim, 6));
       f.score = Dot;
     }},
    {"LuongConcat",
     [](auto& r) {
       r.mutable_luong()->set_score(v1::LUONG_SCORE_CONCAT);
       Set(*r.mutable_luong()->mutable_weight(), Numbers(2, 2 * kDim, 6));
       SetVector(*r.mutable_luong()->mutable_score_weight(), Numbers(1, 2, 7));
     },
     [](auto& f) {
       f.score = [](const Row& q, const Row& k) {
         double sum = 0;
         for (int unit = 0; unit < 2; ++unit) {
           double hidden = 0;
           for (int d = 0; d < 2 * kDim; ++d) {
             hidden += Numbers(2, 2 * kDim, 6).at(unit, d) * (d < kDim ? q[d] : k[d - kDim]);
           }
           sum += Numbers(1, 2, 7).at(0, unit) * std::tanh(hidden);
         }
         return sum;
       };
     }},
    {"LinearElu", [](auto& r) { r.mutable_linear(); }, [](auto& f) { MapFeatures(f, EluPlusOne); }},
    {"LinearRelu", [](auto& r) { r.mutable_linear()->set_feature_map(v1::FEATURE_MAP_RELU); },
     [](auto& f) { MapFeatures(f, [](double x) { return x > 0 ? x : 0; }); }},
    {"LinearCausal",
     [](auto& r) {
       r.mutable_linear();
       r.set_causal(true);
     },
     [](auto& f) {
       MapFeatures(f, EluPlusOne);
       f.add = Sees([](int i, int j) { return j <= i; });
     }},
    {"Linformer",
     [](auto& r) {
       Set(*r.mutable_linformer()->mutable_key_projection(), Numbers(2, kLen, 6));
       Set(*r.mutable_linformer()->mutable_value_projection(), Numbers(2, kLen, 7));
     },
     [](auto& f) {
       f.keys = Product(Numbers(2, kLen, 6), f.keys);
       f.values = Product(Numbers(2, kLen, 7), f.values);
     }},
};

v1::AttendResponse Attend(const v1::AttendRequest& request) {
  AttentionModel model;
  model.isa = *attention::FindIsa("auto");
  v1::AttendResponse response;
  absl::StatusOr<AttendPlan> plan = PlanAttend(request, model);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return response;
  const NumberFormat format = plan->answer_format;
  const auto operation = AttendOperation::Make(*std::move(plan), model, 1 << 20, {});
  EXPECT_TRUE(operation.ok()) << operation.status();
  if (!operation.ok()) return response;
  ThreadPool pool(1);
  EXPECT_TRUE((*operation)->Run(pool).ok());
  ToProto(**operation, format, response);
  return response;
}

std::vector<float> Floats(const v1::Tensor& tensor) {
  std::vector<float> values(tensor.data().size() / sizeof(float));
  std::memcpy(values.data(), tensor.data().data(), values.size() * sizeof(float));
  return values;
}

v1::AttendRequest Request(const Formula& operands) {
  v1::AttendRequest request;
  Set(*request.mutable_query(), {1, kLen, kDim}, operands.queries.Flat());
  Set(*request.mutable_key(), {1, kLen, kDim}, operands.keys.Flat());
  Set(*request.mutable_value(), {1, kLen, kDim}, operands.values.Flat());
  return request;
}

void ExpectValues(const v1::Tensor& tensor, const std::vector<float>& expected) {
  EXPECT_THAT(Floats(tensor), Pointwise(FloatNear(kTolerance), expected));
}

std::vector<float> Both(std::vector<float> first, const std::vector<float>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class FormulaTest : public testing::TestWithParam<Case> {};

TEST_P(FormulaTest, GivesOutputAndWeights) {
  Formula formula;
  v1::AttendRequest request = Request(formula);
  GetParam().ask(request);
  GetParam().expect(formula);
  const v1::AttendResponse alone = Attend(request);
  EXPECT_THAT(alone.output().shape(), ElementsAre(1, kLen, kDim));
  ExpectValues(alone.output(), formula.Output().Flat());
  EXPECT_FALSE(alone.has_weights());
  request.set_weights(v1::ATTENTION_WEIGHTS_PER_HEAD);
  const v1::AttendResponse weighed = Attend(request);
  ExpectValues(weighed.output(), formula.Output().Flat());
  ExpectValues(weighed.weights(), formula.Weights().Flat());
}

const auto kName = [](const auto& test) { return std::string(test.param.name); };
INSTANTIATE_TEST_SUITE_P(Options, FormulaTest, testing::ValuesIn(kOptions), kName);
INSTANTIATE_TEST_SUITE_P(Positions, FormulaTest, testing::ValuesIn(kPositions), kName);
INSTANTIATE_TEST_SUITE_P(Kinds, FormulaTest, testing::ValuesIn(kKinds), kName);

// Keys and values that were not sent are the query. With positions the values are a copy without.
TEST(SelfAttentionFormulaTest, PositionsLeaveTheValuesAlone) {
  Formula formula;
  formula.keys = formula.values = formula.queries;
  v1::AttendRequest request = Request(formula);
  request.clear_key();
  request.clear_value();
  ExpectValues(Attend(request).output(), formula.Output().Flat());
  Set(*request.mutable_added()->mutable_learned(), Numbers(7, kDim, 5));
  for (Matrix* rows : {&formula.queries, &formula.keys}) AddTable(*rows, Learned);
  ExpectValues(Attend(request).output(), formula.Output().Flat());
  request.mutable_added()->set_to_value(true);
  formula.values = formula.keys;
  ExpectValues(Attend(request).output(), formula.Output().Flat());
}

TEST(HeadsFormulaTest, EachHeadHasItsRowsAndItsSlope) {
  Formula first, second;
  second.queries = Numbers(kLen, kDim, 8);
  second.keys = Numbers(kLen, kDim, 9);
  first.add = [](int i, int j) { return -0.5 * std::abs(i - j); };
  second.add = [](int i, int j) { return -2.0 * std::abs(i - j); };
  v1::AttendRequest request;
  Set(*request.mutable_query(), {1, 2, kLen, kDim},
      Both(first.queries.Flat(), second.queries.Flat()));
  Set(*request.mutable_key(), {1, 2, kLen, kDim}, Both(first.keys.Flat(), second.keys.Flat()));
  Set(*request.mutable_value(), {1, 2, kLen, kDim},
      Both(first.values.Flat(), second.values.Flat()));
  for (const float slope : {0.5f, 2.0f}) request.mutable_alibi()->add_slopes(slope);
  request.set_weights(v1::ATTENTION_WEIGHTS_PER_HEAD);
  v1::AttendResponse response = Attend(request);
  EXPECT_THAT(response.output().shape(), ElementsAre(1, 2, kLen, kDim));
  ExpectValues(response.output(), Both(first.Output().Flat(), second.Output().Flat()));
  EXPECT_THAT(response.weights().shape(), ElementsAre(1, 2, kLen, kLen));
  ExpectValues(response.weights(), Both(first.Weights().Flat(), second.Weights().Flat()));
  request.set_weights(v1::ATTENTION_WEIGHTS_AVERAGED);
  response = Attend(request);
  Matrix averaged = first.Weights();
  for (int i = 0; i < kLen * kLen; ++i) {
    double& weight = averaged.at(i / kLen, i % kLen);
    weight = (weight + second.Weights().at(i / kLen, i % kLen)) / 2;
  }
  EXPECT_THAT(response.weights().shape(), ElementsAre(1, kLen, kLen));
  ExpectValues(response.weights(), averaged.Flat());
}

TEST(RaggedFormulaTest, SequencesDoNotSeeEachOther) {
  Formula formula;  // the first two tokens, and the other three
  v1::AttendRequest request = Request(formula);
  formula.add = Sees([](int i, int j) { return (i < 2) == (j < 2); });
  for (v1::Tensor* tensor :
       {request.mutable_query(), request.mutable_key(), request.mutable_value()}) {
    tensor->clear_shape();
    for (const int64_t dim : {kLen, kDim}) tensor->add_shape(dim);
  }
  for (const int length : {2, 3}) request.add_query_lengths(length);
  const v1::AttendResponse response = Attend(request);
  EXPECT_THAT(response.output().shape(), ElementsAre(kLen, kDim));
  ExpectValues(response.output(), formula.Output().Flat());
}

TEST(RaggedFormulaTest, KeysThatAreTheQueryHavePositionsByTheirOwnLengths) {
  for (const Case& positions : kPositions) {
    v1::AttendRequest request;
    Set(*request.mutable_query(), Numbers(kLen, kDim, 1));
    for (const int length : {2, 3}) request.add_query_lengths(length);
    for (const int length : {3, 2}) request.add_key_lengths(length);
    positions.ask(request);
    v1::AttendRequest sent = request;
    *sent.mutable_key() = sent.query();
    SCOPED_TRACE(positions.name);
    ExpectValues(Attend(request).output(), Floats(Attend(sent).output()));
  }
}

}  // namespace
}  // namespace attendant
