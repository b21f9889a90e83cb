// SPDX-License-Identifier: Apache-2.0
// Attention of each instruction set and operand format beside plain loops.
#include "kernels/cpu/attention/flash_attention.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/core/base/half.h"
#include "tests/kernels/cpu/attention/attention_problem.h"

namespace attendant::cpu {
namespace {

using Bias = AttentionShape::Bias;

std::vector<CpuIsa> Available() {
  std::vector<CpuIsa> isas;
  for (CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAvx512Bf16, CpuIsa::kAmx}) {
    if (FlashAttention::Create(DType::kF32, isa).ok()) isas.push_back(isa);
  }
  return isas;
}

class FlashAttentionTest : public testing::TestWithParam<std::tuple<CpuIsa, DType>> {
 protected:
  static DType dtype() { return std::get<1>(GetParam()); }
  const FlashAttention& attention() const { return attention_; }

  void ExpectPlain(const AttentionShape& shape, int64_t piece = 0) {
    AttentionProblem problem(shape, dtype());
    problem.Run(attention_, piece);
    problem.ExpectPlain();
  }
  void ExpectSameBitsInAnyPieces(const AttentionShape& shape) {
    AttentionProblem whole(shape, dtype());
    whole.Run(attention_);
    for (int64_t piece : {1, 4, 7, 100, 241}) {
      AttentionProblem pieces(shape, dtype());
      pieces.Run(attention_, piece);
      EXPECT_EQ(pieces.out(), whole.out()) << "pieces of " << piece;
    }
  }

 private:
  FlashAttention attention_ = *FlashAttention::Create(dtype(), std::get<0>(GetParam()));
};

TEST_P(FlashAttentionTest, EveryNumberOfKeys) {
  for (int64_t keys = 1; keys <= 140; ++keys) ExpectPlain({.queries = 5, .keys = keys});
}
TEST_P(FlashAttentionTest, EveryNumberOfQueries) {
  for (int64_t queries = 1; queries <= 40; ++queries) ExpectPlain({.queries = queries, .keys = 21});
}
TEST_P(FlashAttentionTest, EveryHeadDim) {
  for (int64_t dim = 1; dim <= 130; ++dim) {
    ExpectPlain({.queries = 7, .keys = 19, .head_dim = dim, .value_dim = 8});
    ExpectPlain({.queries = 2, .keys = 130, .head_dim = dim, .value_dim = dim});
  }
}
TEST_P(FlashAttentionTest, EveryValueDim) {
  for (int64_t dim = 1; dim <= 130; ++dim) {
    ExpectPlain({.queries = 7, .keys = 19, .head_dim = 8, .value_dim = dim});
  }
}
TEST_P(FlashAttentionTest, KeysAroundEveryEdgeOfBlocks) {
  for (int64_t keys :
       {500, 503, 504, 505, 511, 512, 513, 528, 1007, 1008, 1009, 1024, 1025, 1700}) {
    ExpectPlain({.queries = 9, .keys = keys, .head_dim = 16, .value_dim = 20});
  }
}
// Their sums only grow: added one by one, each value would lose what is small beside all before it.
// Equal weights and values lose the same each time.
TEST_P(FlashAttentionTest, ManyValuesOfOneSignKeepTheirDigits) {
  for (int64_t keys : {20'000, 65'536}) {
    ExpectPlain({.queries = 9,
                 .keys = keys,
                 .head_dim = 8,
                 .value_dim = 20,
                 .spread = 1e-30f,
                 .value = 0.7f});
  }
}
TEST_P(FlashAttentionTest, MoreQueriesThanAPieceHolds) {
  ExpectPlain({.queries = 500, .keys = 40, .head_dim = 8, .value_dim = 8});
  ExpectPlain({.queries = 300, .keys = 600, .head_dim = 8, .value_dim = 8});
}
TEST_P(FlashAttentionTest, WritesBf16) {
  ExpectPlain({.queries = 8, .keys = 30, .value_dim = 37, .out_is_bf16 = true});
  ExpectPlain({.queries = 3, .keys = 700, .value_dim = 64, .allowed = true, .out_is_bf16 = true});
}

TEST_P(FlashAttentionTest, EveryKindOfBias) {
  for (Bias bias : {Bias::kFull, Bias::kOneForAll, Bias::kOfDistance}) {
    for (bool masking : {false, true}) {
      for (int64_t keys : {1, 16, 33, 64, 100, 600}) {
        ExpectPlain({.queries = 13, .keys = keys, .bias = bias, .masking = masking});
      }
    }
  }
}
TEST_P(FlashAttentionTest, Mask) {
  for (int64_t keys = 1; keys <= 80; ++keys) {
    ExpectPlain({.queries = 15, .keys = keys, .value_dim = 4, .allowed = true});
  }
  ExpectPlain({.queries = 15, .keys = 1100, .allowed = true});
  ExpectPlain({.queries = 15, .keys = 90, .bias = Bias::kFull, .allowed = true, .masking = true});
}
TEST_P(FlashAttentionTest, PaddingGivesTheBitsOfTheKeysWithoutIt) {
  for (int64_t keys : {1, 20, 64, 511, 700}) {
    // Queries are drawn first: the two differ only in the keys that nobody sees.
    AttentionProblem padded({.queries = 20, .keys = keys + 37, .padding = 37}, dtype());
    padded.Run(attention());
    padded.ExpectPlain();
    AttentionProblem without({.queries = 20, .keys = keys}, dtype());
    without.Run(attention());
    EXPECT_EQ(padded.out(), without.out()) << keys;
  }
  ExpectPlain({.queries = 20, .keys = 30, .padding = 30});
  ExpectPlain({.queries = 20, .keys = 30, .padding = 4, .hole = true});
  ExpectPlain({.queries = 40, .keys = 30, .keys_before = 3, .keys_after = 3, .padding = 9});
}
TEST_P(FlashAttentionTest, Causal) {
  for (int64_t len : {1, 2, 6, 7, 16, 17, 64, 65, 130, 513, 700}) {
    ExpectPlain({.queries = len, .keys = len, .head_dim = 9, .value_dim = 9, .keys_after = 0});
  }
  // Fewer keys than queries, and more: the first query faces the first key.
  ExpectPlain({.queries = 40, .keys = 25, .keys_after = 0});
  ExpectPlain({.queries = 25, .keys = 40, .keys_after = 0});
}
TEST_P(FlashAttentionTest, Windows) {
  for (int64_t before : {0, 1, 5, 16, 70, 600}) {
    for (int64_t after : {0, 3, 64, 550}) {
      for (int64_t keys : {1, 50, 200, 530, 1040}) {
        ExpectPlain({.queries = 60, .keys = keys, .keys_before = before, .keys_after = after});
      }
    }
  }
  // Beyond all keys, and windows that end within the second and third block.
  ExpectPlain({.queries = 300, .keys = 20, .keys_before = 30, .keys_after = 4});
  ExpectPlain({.queries = 1100,
               .keys = 1100,
               .head_dim = 4,
               .value_dim = 4,
               .keys_before = 17,
               .keys_after = 9});
  ExpectPlain({.queries = 90,
               .keys = 300,
               .keys_before = 20,
               .keys_after = 20,
               .bias = Bias::kFull,
               .allowed = true,
               .masking = true});
}

TEST_P(FlashAttentionTest, AQueryWithoutKeysGivesZerosWhateverTheValuesAre) {
  AttentionShape shape{.queries = 4, .keys = 0};
  ExpectPlain(shape);
  shape = {.queries = 20, .keys = 10, .keys_before = 2, .keys_after = 0};
  AttentionProblem problem(shape, dtype());
  const AttentionArgs args = problem.args();
  // Queries 12 and more see nothing; an infinite value must not reach them as 0 * inf.
  const auto infinity = std::numeric_limits<float>::infinity();
  const uint16_t infinity_bf16 = 0x7f80;
  for (int64_t key = 0; key < shape.keys; ++key) {
    void* row = const_cast<void*>(args.v);
    if (dtype() == DType::kBf16) {
      static_cast<uint16_t*>(row)[key * args.v_stride] = infinity_bf16;
    } else {
      static_cast<float*>(row)[key * args.v_stride] = infinity;
    }
  }
  problem.Run(attention());
  const auto* out = static_cast<const float*>(args.out);
  for (int64_t query = 12; query < shape.queries; ++query) {
    for (int64_t d = 0; d < shape.value_dim; ++d) EXPECT_EQ(out[query * args.out_stride + d], 0);
  }
}
TEST_P(FlashAttentionTest, HugeLogits) {
  // Scores up to 1e4 either way: nothing overflows, and no row of large negative ones loses all.
  for (int64_t keys : {1, 33, 700}) {
    for (float scale : {2.0f, -2.0f}) {
      ExpectPlain({.queries = 12,
                   .keys = keys,
                   .head_dim = 8,
                   .value_dim = 8,
                   .spread = 40,
                   .scale = scale});
    }
  }
}
// The rounding of such a score alone, times scale, is hundreds of powers of two or more; with the
// first spread only some of the rows are subtracted from.
TEST_P(FlashAttentionTest, EnormousLogitsChooseTheLargestKey) {
  for (float spread : {3e3f, 1e5f, 1e6f}) {
    for (int64_t keys : {1, 33, 700, 1100}) {
      for (float scale : {0.0f, 2.0f, -2.0f}) {
        const AttentionShape shape{
            .queries = 40, .keys = keys, .head_dim = 64, .spread = spread, .scale = scale};
        ExpectPlain(shape);
        ExpectSameBitsInAnyPieces(shape);
        AttentionShape window = shape;
        window.keys_after = 0;
        ExpectPlain(window);
        window.keys_before = 20;
        ExpectPlain(window);
      }
      ExpectPlain({.queries = 40,
                   .keys = keys,
                   .head_dim = 64,
                   .bias = Bias::kFull,
                   .masking = true,
                   .spread = spread});
    }
  }
}
// The kernel of AMX tries without the row's maximum first: the weights are 2^50 then, their sum is
// in its range, but times these values it overflows.
TEST_P(FlashAttentionTest, HugeValuesBehindLargeLogits) {
  constexpr int64_t kQueries = 40, kKeys = 64, kDim = 64;
  constexpr float kValue = 0x1p100f;
  const auto filled = [](int64_t count, float value) {
    if (dtype() == DType::kBf16) value = std::bit_cast<float>(ToBf16(value) * 0x10001u);  // two
    return std::vector<float>(static_cast<size_t>(count), value);
  };
  const std::vector<float> ones = filled(kKeys * kDim, 1), values = filled(kKeys * kDim, kValue);
  std::vector<float> out(kQueries * kDim);
  std::vector<std::byte> scratch(static_cast<size_t>(attention().ScratchBytes(kKeys, kDim, kDim)));
  AttentionArgs args;
  args.q = args.k = ones.data();
  args.v = values.data();
  args.out = out.data();
  args.q_stride = args.k_stride = args.v_stride = args.out_stride = kDim;
  args.query_end = kQueries;
  args.keys = kKeys;
  args.head_dim = args.value_dim = kDim;
  args.scale = 50 / (kDim * 1.44269504f);
  args.scratch = scratch.data();
  attention().Run(args);
  for (const float value : out) EXPECT_NEAR(value / kValue, 1, 1e-2);
}
TEST_P(FlashAttentionTest, AnyScale) {
  for (float scale : {1e-30f, -0.3f, -1e-30f, 1.0f}) {
    ExpectPlain({.queries = 12, .keys = 40, .scale = scale});
    ExpectPlain({.queries = 12,
                 .keys = 40,
                 .keys_after = 0,
                 .bias = Bias::kFull,
                 .masking = true,
                 .scale = scale});
  }
  // Nothing but the mask decides.
  AttentionProblem problem({.queries = 12, .keys = 40, .keys_after = 0}, dtype());
  AttentionArgs args = problem.args();
  args.scale = 0;
  std::vector<std::byte> scratch(static_cast<size_t>(attention().ScratchBytes(40, 32, 32)));
  args.scratch = scratch.data();
  attention().Run(args);
  for (int64_t query = 0; query < 12; ++query) {
    EXPECT_TRUE(std::isfinite(static_cast<const float*>(args.out)[query * args.out_stride]));
  }
}

TEST_P(FlashAttentionTest, BitsDoNotDependOnThePieces) {
  ExpectSameBitsInAnyPieces({.queries = 260, .keys = 260, .head_dim = 24});
  ExpectSameBitsInAnyPieces({.queries = 260, .keys = 1200, .head_dim = 24});
  ExpectSameBitsInAnyPieces({.queries = 300, .keys = 300, .keys_after = 0});
  ExpectSameBitsInAnyPieces({.queries = 1300, .keys = 1300, .head_dim = 8, .keys_after = 0});
  ExpectSameBitsInAnyPieces(
      {.queries = 1300, .keys = 1300, .head_dim = 8, .keys_before = 40, .keys_after = 20});
  ExpectSameBitsInAnyPieces(
      {.queries = 250, .keys = 600, .bias = Bias::kFull, .allowed = true, .masking = true});
}

// A mask may leave out the last keys, and the scratch of a batch is that of its longest sequence.
TEST_P(FlashAttentionTest, ScratchIsEnoughForFewerKeys) {
  for (int64_t dim : {1, 16, 32, 64}) {
    int64_t before = 0;
    for (int64_t keys = 0; keys <= 1200; ++keys) {
      const int64_t bytes = attention().ScratchBytes(keys, dim, dim);
      ASSERT_GE(bytes, before) << keys << " keys of " << dim;
      before = bytes;
    }
  }
}

TEST_P(FlashAttentionTest, ScratchStopsGrowingWithTheKeys) {
  EXPECT_EQ(attention().ScratchBytes(2000, 64, 64), attention().ScratchBytes(1 << 20, 64, 64));
  EXPECT_LE(attention().ScratchBytes(1 << 20, 64, 64), 512 << 10);
}

std::string Name(const testing::TestParamInfo<std::tuple<CpuIsa, DType>>& info) {
  const CpuIsa isa = std::get<0>(info.param);
  const DType dtype = std::get<1>(info.param);
  return std::string(FlashAttention::Create(dtype, isa)->isa()) + "_" +
         std::string(DTypeName(dtype));
}

INSTANTIATE_TEST_SUITE_P(Isa, FlashAttentionTest,
                         testing::Combine(testing::ValuesIn(Available()),
                                          testing::Values(DType::kF32, DType::kBf16)),
                         Name);

// Tiles sum in another order than vectors: equal bits would say that they were never used.
TEST(AmxAttentionTest, TilesComputeAllButTheShortest) {
  const auto amx = FlashAttention::Create(DType::kBf16, CpuIsa::kAmx);
  if (!amx.ok()) GTEST_SKIP() << amx.status();
  const auto vectors = FlashAttention::Create(DType::kBf16, CpuIsa::kAvx512Bf16);
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  for (int64_t keys : {1, 16, 17, 64, 130, 512, 2048}) {
    AttentionProblem tiled({.queries = 40, .keys = keys, .head_dim = 64}, DType::kBf16);
    AttentionProblem plain({.queries = 40, .keys = keys, .head_dim = 64}, DType::kBf16);
    tiled.Run(*amx);
    plain.Run(*vectors);
    EXPECT_EQ(tiled.out() == plain.out(), keys <= 16) << keys;
  }
}

// Rows within the range of unshifted sums beside rows beyond it, either way.
TEST(AmxAttentionTest, RowsBeyondTheRangeKeepTheirOwnBits) {
  const auto amx = FlashAttention::Create(DType::kBf16, CpuIsa::kAmx);
  if (!amx.ok()) GTEST_SKIP() << amx.status();
  for (float scale : {1.0f, 4.0f, -4.0f, 100.0f}) {
    for (int64_t keys : {40, 700}) {
      const AttentionShape shape{
          .queries = 70, .keys = keys, .head_dim = 64, .spread = 2, .scale = scale};
      AttentionProblem whole(shape, DType::kBf16);
      whole.Run(*amx);
      whole.ExpectPlain();
      AttentionProblem rows(shape, DType::kBf16);
      rows.Run(*amx, 1);
      EXPECT_EQ(rows.out(), whole.out()) << "scale " << scale << " keys " << keys;
    }
  }
}

TEST(FlashAttentionCreateTest, RefusesOtherFormats) {
  EXPECT_EQ(FlashAttention::Create(DType::kInt8).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace attendant::cpu
