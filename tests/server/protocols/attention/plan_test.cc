// SPDX-License-Identifier: Apache-2.0
// What a request takes, to the byte, and the limits on it, to the last value.
#include "server/protocols/attention/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/checkpoints/attention_module.h"
#include "kernels/cpu/simd/isa_level.h"
#include "server/protocols/attention/operation.h"
#include "tests/server/protocols/attention/formula.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kValues = kLen * kDim;  // of an operand
constexpr int64_t kPairs = kLen * kLen;

std::unique_ptr<AttentionModel> Model(const AttentionLimits& limits = {}) {
  auto model = std::make_unique<AttentionModel>();
  model->name = "mine";
  model->isa = *attention::FindIsa("auto");
  model->limits = limits;
  return model;
}

// One that serves a module of tests/golden/attention.
std::unique_ptr<AttentionModel> ModuleModel(const std::string& module, DType dtype) {
  std::unique_ptr<AttentionModel> model = Model();
  absl::StatusOr<ModuleCheckpoint> checkpoint =
      LoadAttentionModule(absl::StrCat("tests/golden/attention/", module));
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  auto made =
      attention::MakeModule(checkpoint->config, std::move(checkpoint->weights), dtype, model->isa);
  EXPECT_TRUE(made.ok()) << made.status();
  model->module = *std::move(made);
  return model;
}

// Self-attention of kLen tokens.
v1::AttendRequest Request() {
  v1::AttendRequest request;
  Set(*request.mutable_query(), {1, kLen, kDim}, Numbers(kLen, kDim, 1).Flat());
  return request;
}

void SetFormat(v1::Tensor& tensor, v1::DType dtype) {
  tensor.set_dtype(dtype);
  tensor.mutable_data()->resize(tensor.data().size() / 2);
}

struct Size {
  const char* name;
  void (*change)(v1::AttendRequest& request);
  int64_t bytes;  // of operands, beside the query's copy in f32
};

const Size kSizes[] = {
    {"QueryAlone", [](auto&) {}, 0},
    {"QueryOfHalfFloats", [](auto& r) { SetFormat(*r.mutable_query(), v1::DTYPE_F16); }, 0},
    {"InBf16", [](auto& r) { r.set_compute_dtype(v1::DTYPE_BF16); }, -2 * kValues},
    {"Key",
     [](auto& r) {
       Set(*r.mutable_key(), {1, 3, kDim}, Numbers(3, kDim, 2).Flat());
     },
     3 * kDim * 4},
    {"KeyAndValue",
     [](auto& r) {
       Set(*r.mutable_key(), {1, 3, kDim}, Numbers(3, kDim, 2).Flat());
       Set(*r.mutable_value(), {1, 3, 7}, Numbers(3, 7, 3).Flat());
     },
     3 * kDim * 4 + 3 * 7 * 4},
    {"BoolMask",
     [](auto& r) {
       SetBools(*r.mutable_mask(), {1, kLen}, "11010");
     },
     kLen},
    {"F32Mask", [](auto& r) { Set(*r.mutable_mask(), Numbers(kLen, kLen, 4)); }, 4 * kPairs},
    {"F16Mask",
     [](auto& r) {
       Set(*r.mutable_mask(), Numbers(kLen, kLen, 4));
       SetFormat(*r.mutable_mask(), v1::DTYPE_F16);
     },
     4 * kPairs},
    {"Bf16Mask",
     [](auto& r) {
       Set(*r.mutable_mask(), Numbers(kLen, kLen, 4));
       SetFormat(*r.mutable_mask(), v1::DTYPE_BF16);
     },
     2 * kPairs},
    {"KeyPadding",
     [](auto& r) {
       SetBools(*r.mutable_key_padding_mask(), {1, kLen}, "11010");
     },
     kLen},
    {"RotaryKeepsTheValues", [](auto& r) { r.mutable_rotary(); }, 4 * kValues},
    {"SinusoidalKeepsTheValues", [](auto& r) { r.mutable_added()->mutable_sinusoidal(); },
     4 * kValues},
    {"SinusoidalToValue",
     [](auto& r) {
       r.mutable_added()->mutable_sinusoidal();
       r.mutable_added()->set_to_value(true);
     },
     0},
    {"Learned", [](auto& r) { Set(*r.mutable_added()->mutable_learned(), Numbers(7, kDim, 5)); },
     4 * kValues + 7 * kDim * 4},
    {"Parameters",
     [](auto& r) {
       Set(*r.mutable_additive()->mutable_query_weight(), Numbers(3, kDim, 6));
       Set(*r.mutable_additive()->mutable_key_weight(), Numbers(3, kDim, 7));
       SetVector(*r.mutable_additive()->mutable_score_weight(), Numbers(1, 3, 8));
     },
     (3 * kDim + 3 * kDim + 3) * 4},
    {"WeightsOfAModule",  // in f32, and packed: filled up, with a bias each
     [](auto& r) {
       v1::MultiHeadAttention& kind = *r.mutable_multi_head();
       kind.set_heads(2);
       for (v1::Tensor* weight : {kind.mutable_query_weight(), kind.mutable_key_weight(),
                                  kind.mutable_value_weight(), kind.mutable_output_weight()}) {
         Set(*weight, Numbers(kDim, kDim, 6));
       }
       SetVector(*kind.mutable_key_bias(), Numbers(1, kDim, 7));
     },
     (4 * kDim * kDim + kDim) * 4 + 4 * ((kDim + 63) * (kDim + 63) + kDim) * 4},
};

class OperandBytesTest : public testing::TestWithParam<Size> {};

TEST_P(OperandBytesTest, AreCountedToTheByte) {
  v1::AttendRequest request = Request();
  GetParam().change(request);
  const absl::StatusOr<AttendPlan> plan = PlanAttend(request, *Model());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->operand_bytes, 4 * kValues + GetParam().bytes);
}

INSTANTIATE_TEST_SUITE_P(All, OperandBytesTest, testing::ValuesIn(kSizes),
                         [](const auto& test) { return std::string(test.param.name); });

absl::Status Make(const v1::AttendRequest& request, const AttentionModel& model,
                  int64_t max_response_bytes = int64_t{1} << 40) {
  absl::StatusOr<AttendPlan> plan = PlanAttend(request, model);
  if (!plan.ok()) return plan.status();
  return AttendOperation::Make(*std::move(plan), model, max_response_bytes, {}).status();
}

// How much of something a request takes, by the refusal of a server that allows nothing.
int64_t Taken(const v1::AttendRequest& request, int64_t AttentionLimits::*limit) {
  AttentionLimits limits;
  limits.*limit = 0;
  const absl::Status refused = Make(request, *Model(limits));
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  const std::vector<std::string> words = absl::StrSplit(refused.message(), ' ');
  int64_t taken = -1;  // "the request takes N ..."
  EXPECT_TRUE(words.size() > 3 && absl::SimpleAtoi(words[3], &taken)) << refused;
  return taken;
}

v1::AttendRequest WithScores() {
  v1::AttendRequest request = Request();
  request.mutable_scaled_dot_product()->set_algorithm(v1::ATTENTION_ALGORITHM_SCORES);
  return request;
}

TEST(AttendLimitsTest, EachIsTheLargestThatIsAllowed) {
  struct Limit {
    int64_t AttentionLimits::*limit;
    const char* flag;
  };
  for (const auto& [limit, flag] :
       {Limit{&AttentionLimits::max_tokens, "--max_attention_tokens"},
        {&AttentionLimits::max_bytes, "--max_attention_bytes"},
        {&AttentionLimits::max_operations, "--max_attention_operations"}}) {
    const int64_t taken = Taken(WithScores(), limit);
    EXPECT_GT(taken, 0) << flag;
    AttentionLimits limits;
    limits.*limit = taken;
    EXPECT_TRUE(Make(WithScores(), *Model(limits)).ok()) << flag;
    limits.*limit = taken - 1;
    EXPECT_THAT(std::string(Make(WithScores(), *Model(limits)).message()),
                HasSubstr(absl::StrCat("the limit is ", taken - 1, " (", flag, ")")));
  }
}

TEST(AttendLimitsTest, AnswersAreCountedAsF32) {
  v1::AttendRequest request = WithScores();
  request.set_weights(v1::ATTENTION_WEIGHTS_PER_HEAD);
  request.set_compute_dtype(v1::DTYPE_BF16);
  request.set_dtype(v1::DTYPE_F16);
  const int64_t bytes = (kLen * kDim + kLen * kLen) * 4;
  EXPECT_TRUE(Make(request, *Model(), bytes).ok());
  EXPECT_THAT(std::string(Make(request, *Model(), bytes - 1).message()),
              HasSubstr(absl::StrCat("takes ", bytes, " bytes for its answer as f32, the limit is ",
                                     bytes - 1, " (--max_response_bytes)")));
}

// Queries and keys count, each once.
TEST(AttendLimitsTest, TokensAreThoseOfQueriesAndKeys) {
  v1::AttendRequest request = Request();
  EXPECT_EQ(Taken(request, &AttentionLimits::max_tokens), 2 * kLen);
  Set(*request.mutable_key(), {1, 3, kDim}, Numbers(3, kDim, 2).Flat());
  EXPECT_EQ(Taken(request, &AttentionLimits::max_tokens), kLen + 3);
}

// The table is as wide as the widest operand and as long as the longest sequence.
TEST(AttendLimitsTest, ASinusoidalTableIsScratchMemory) {
  constexpr int64_t AttentionLimits::*kLimit = &AttentionLimits::max_bytes;
  v1::AttendRequest request = WithScores();
  Set(*request.mutable_key(), {1, 9, kDim}, Numbers(9, kDim, 2).Flat());
  Set(*request.mutable_value(), {1, 9, 6}, Numbers(9, 6, 3).Flat());
  const int64_t without = Taken(request, kLimit);
  request.mutable_added()->mutable_sinusoidal();
  EXPECT_EQ(Taken(request, kLimit), without + 9 * 6 * 4);
  request.clear_position();
  Set(*request.mutable_added()->mutable_learned(), Numbers(9, kDim, 5));
  EXPECT_EQ(Taken(request, kLimit), without) << "a learned one is an operand";
}

// They count for each operand that has memory of its own.
TEST(AttendLimitsTest, PositionsAreOperations) {
  constexpr int64_t AttentionLimits::*kLimit = &AttentionLimits::max_operations;
  constexpr int64_t kOfTable = attention::kSinusoidalOperations;
  constexpr int64_t kOfValue = attention::kAddPositionOperations;
  v1::AttendRequest request = WithScores();
  Set(*request.mutable_key(), {1, 9, kDim}, Numbers(9, kDim, 2).Flat());
  Set(*request.mutable_value(), {1, 9, 6}, Numbers(9, 6, 3).Flat());
  const int64_t without = Taken(request, kLimit);
  request.mutable_added()->mutable_sinusoidal();
  const int64_t added = (kLen + 9) * kDim * (kOfTable + kOfValue);
  EXPECT_EQ(Taken(request, kLimit), without + added);
  request.mutable_added()->set_to_value(true);
  EXPECT_EQ(Taken(request, kLimit), without + added + 9 * 6 * (kOfTable + kOfValue));
  request.clear_position();
  Set(*request.mutable_added()->mutable_learned(), Numbers(9, kDim, 5));
  EXPECT_EQ(Taken(request, kLimit), without + (kLen + 9) * kDim * kOfValue);
  request.clear_position();
  request.mutable_rotary();
  EXPECT_EQ(
      Taken(request, kLimit),
      without + (kLen + 9) * kDim / 2 * (attention::kAngleOperations + attention::kTurnOperations));
}

TEST(AttendPlanTest, ALearnedTableForTheValuesIsAsWideAsTheyAre) {
  v1::AttendRequest request = Request();
  Set(*request.mutable_key(), {1, kLen, kDim}, Numbers(kLen, kDim, 2).Flat());
  Set(*request.mutable_value(), {1, kLen, 6}, Numbers(kLen, 6, 3).Flat());
  Set(*request.mutable_added()->mutable_learned(), Numbers(kLen, kDim, 5));
  EXPECT_TRUE(Make(request, *Model()).ok());
  request.mutable_added()->set_to_value(true);
  const absl::Status refused = Make(request, *Model());
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("value's 6"));
}

TEST(AttendPlanTest, SlopesAreAsManyAsHeads) {
  v1::AttendRequest request;
  Set(*request.mutable_query(), {1, 2, kLen, 2}, Numbers(kLen, kDim, 1).Flat());
  for (const bool expected : {false, true, false}) {
    request.mutable_alibi()->add_slopes(1);
    EXPECT_EQ(Make(request, *Model()).ok(), expected) << request.alibi().slopes_size();
  }
}

TEST(AttendPlanTest, AModuleComputesInTheFormatItWasLoadedIn) {
  if (!Model()->isa->bf16) GTEST_SKIP() << "modules in bf16 need a faster processor";
  const std::unique_ptr<AttentionModel> model = ModuleModel("mha_cross", DType::kBf16);
  v1::AttendRequest request;
  Set(*request.mutable_query(), {1, 2, 24}, Numbers(2, 24, 1).Flat());
  Set(*request.mutable_key(), {1, 3, 10}, Numbers(3, 10, 2).Flat());
  Set(*request.mutable_value(), {1, 3, 14}, Numbers(3, 14, 3).Flat());
  EXPECT_EQ(PlanAttend(request, *model)->call.dtype, DType::kBf16);
  request.set_compute_dtype(v1::DTYPE_BF16);
  EXPECT_TRUE(Make(request, *model).ok());
  request.set_compute_dtype(v1::DTYPE_F32);
  const absl::Status refused = Make(request, *model);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("compute_dtype is f32, but model 'mine' was loaded in bf16"));
}

TEST(AttendPlanTest, AnEncoderTakesTokensAlone) {
  const std::unique_ptr<AttentionModel> model = ModuleModel("encoder_pre_norm", DType::kF32);
  v1::AttendRequest good;
  Set(*good.mutable_query(), {1, 2, 16}, Numbers(2, 16, 1).Flat());
  EXPECT_TRUE(Make(good, *model).ok());
  struct Case {
    void (*spoil)(v1::AttendRequest& request);
    const char* message;
  };
  for (const auto& [spoil, message] :
       {Case{[](auto& r) { r.mutable_local(); }, "kind is set"},
        Case{[](auto& r) { r.set_scale(1); }, "scale is set"},
        Case{[](auto& r) {
               Set(*r.mutable_key(), {1, 2, 16}, Numbers(2, 16, 1).Flat());
             },
             "key is set"},
        Case{[](auto& r) {
               Set(*r.mutable_query(), {1, 2, 2, 8}, Numbers(2, 16, 1).Flat());
             },
             "query has heads, which this kind makes itself"}}) {
    v1::AttendRequest request = good;
    spoil(request);
    const absl::Status refused = Make(request, *model);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace attendant
