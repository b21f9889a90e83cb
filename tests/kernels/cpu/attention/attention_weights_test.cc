// SPDX-License-Identifier: Apache-2.0
// The kernel behind attention weights, for each instruction set, beside a plain twin.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/cpu/attention/flash_attention.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/vector_kernels.h"
#include "tests/kernels/cpu/attention/attention_problem.h"
#include "tests/kernels/cpu/simd/available_kernels.h"

namespace attendant::cpu {
namespace {

constexpr float kUntouched = 12345.0f;

// Queries and keys side by side, [len, 2 * head_dim]: numbers that bf16 holds exactly.
struct TestQk {
  TestQk(int64_t len, int64_t dim, float spread) : head_dim(dim) {
    std::mt19937 random(static_cast<uint32_t>(len));
    std::normal_distribution<float> normal(0, spread);
    for (int64_t i = 0; i < len * 2 * dim; ++i) {
      halves.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(normal(random)) >> 16));
      values.push_back(std::bit_cast<float>(static_cast<uint32_t>(halves.back()) << 16));
    }
  }
  const void* part(bool bf16, int64_t index) const {  // q, k: 0, 1
    return bf16 ? static_cast<const void*>(halves.data() + index * head_dim)
                : static_cast<const void*>(values.data() + index * head_dim);
  }
  double Dot(int64_t query, int64_t key) const {
    double dot = 0;
    for (int64_t d = 0; d < head_dim; ++d) {
      dot += static_cast<double>(values[static_cast<size_t>(query * 2 * head_dim + d)]) *
             values[static_cast<size_t>((key * 2 + 1) * head_dim + d)];
    }
    return dot;
  }

  int64_t head_dim;
  std::vector<float> values;
  std::vector<uint16_t> halves;
};

std::vector<double> PlainWeights(const TestQk& qk, int64_t len, double scale, int64_t query) {
  std::vector<double> weights;
  for (int64_t key = 0; key < len; ++key) weights.push_back(qk.Dot(query, key) * scale);
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return weights;
}

struct Piece {
  int64_t len, head_dim, query_begin, query_end;
  float spread = 1;
  float tolerance = 2e-6f;
};

void ExpectWeights(const VectorKernels& kernels, const RowKernels& rows, const Piece& piece) {
  const auto [len, head_dim, query_begin, query_end, spread, tolerance] = piece;
  const TestQk qk(len, head_dim, spread);
  std::vector<float> out(static_cast<size_t>(len * len) + 1, kUntouched);
  const int64_t scratch_size =
      kernels.attention_weights_scratch_bytes(len, head_dim) / static_cast<int64_t>(sizeof(float));
  std::vector<float> scratch(static_cast<size_t>(scratch_size) + 1, kUntouched);
  const float scale = 1 / std::sqrt(static_cast<float>(head_dim));
  const AttentionArgs args{.q = qk.part(rows.qkv_is_bf16, 0),
                           .k = qk.part(rows.qkv_is_bf16, 1),
                           .q_stride = 2 * head_dim,
                           .k_stride = 2 * head_dim,
                           .keys = len,
                           .head_dim = head_dim,
                           .query_begin = query_begin,
                           .query_end = query_end,
                           .scale = scale,
                           .scratch = scratch.data()};
  rows.attention_weights(args, out.data(), len);
  EXPECT_EQ(scratch.back(), kUntouched);
  EXPECT_EQ(out.back(), kUntouched);
  for (int64_t query = 0; query < len; ++query) {
    const auto expected = PlainWeights(qk, len, scale, query);
    for (int64_t key = 0; key < len; ++key) {
      const float weight = out[static_cast<size_t>(query * len + key)];
      if (query < query_begin || query >= query_end) {
        ASSERT_EQ(weight, kUntouched);
      } else {
        ASSERT_NEAR(weight, expected[static_cast<size_t>(key)], tolerance)
            << "len " << len << " head_dim " << head_dim << " query " << query << " key " << key;
      }
    }
  }
}

class AttentionWeightsTest : public testing::TestWithParam<const VectorKernels*> {
 protected:
  void Expect(const Piece& piece) const {
    for (const RowKernels* rows : {&GetParam()->f32, &GetParam()->bf16, &GetParam()->int8}) {
      ExpectWeights(*GetParam(), *rows, piece);
    }
  }
};

TEST_P(AttentionWeightsTest, EveryLength) {
  for (int64_t len = 1; len <= 150; ++len) Expect({len, 32, 0, len});
}

TEST_P(AttentionWeightsTest, EveryHeadDim) {
  for (int64_t head_dim = 1; head_dim <= 132; ++head_dim) Expect({19, head_dim, 0, 19});
}

TEST_P(AttentionWeightsTest, APieceOfALongSequence) {
  Expect({700, 64, 240, 480});
  Expect({700, 64, 699, 700});
}

// Scores up to about 1e4: all weight on one key, or shared by close ones.
TEST_P(AttentionWeightsTest, HugeLogits) {
  Expect({.len = 33,
          .head_dim = 64,
          .query_begin = 0,
          .query_end = 33,
          .spread = 40,
          .tolerance = 2e-3f});
}

TEST_P(AttentionWeightsTest, MasksBiasesAndWindows) {
  using Bias = AttentionShape::Bias;
  const CpuIsa isa = *ParseCpuIsa(GetParam()->isa);
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    const FlashAttention attention = *FlashAttention::Create(dtype, isa);
    for (int64_t keys : {1, 15, 16, 17, 64, 129, 600}) {
      for (const AttentionShape& shape : std::initializer_list<AttentionShape>{
               {.queries = 15, .keys = keys},
               {.queries = 15, .keys = keys, .allowed = true},
               {.queries = 15, .keys = keys, .bias = Bias::kFull, .masking = true},
               {.queries = 15, .keys = keys, .bias = Bias::kOneForAll, .allowed = true},
               {.queries = 15, .keys = keys, .bias = Bias::kOfDistance},
               {.queries = 15, .keys = keys, .keys_after = 0},
               {.queries = 40, .keys = keys, .keys_before = 3, .keys_after = 5},
               {.queries = 15, .keys = keys, .head_dim = 64, .spread = 1e5f},
               {.queries = 15, .keys = keys, .head_dim = 64, .spread = 1e6f},
               {.queries = 15, .keys = keys, .keys_after = 2, .scale = -0.5f}}) {
        AttentionProblem(shape, dtype).ExpectPlainWeights(attention);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, AttentionWeightsTest, testing::ValuesIn(AvailableKernels()),
                         [](const auto& parameter) { return std::string(parameter.param->isa); });

}  // namespace
}  // namespace attendant::cpu
