// SPDX-License-Identifier: Apache-2.0
// Dot-product, flash and local attention beside plain loops, and by what must hold of any
// attention.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "kernels/attention/check_call.h"
#include "kernels/attention/registry.h"
#include "tests/kernels/attention/call_support.h"
#include "tests/support/counter_values.h"

namespace attendant::attention {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct Parameter {
  Kind kind;
  DType dtype;
};

class ExactAttentionTest : public testing::TestWithParam<Parameter> {
 protected:
  static Kind kind() { return GetParam().kind; }
  static DType dtype() { return GetParam().dtype; }
  static double tolerance() { return dtype() == DType::kF32 ? 1e-5 : 1e-2; }

  // Every kind of weights that this kind of attention gives, beside the reference.
  static void ExpectReference(Call call) {
    if (kind() == Kind::kLocal && call.mask.window < 0) call.mask.window = 3;
    for (WeightsWanted wanted :
         {WeightsWanted::kNone, WeightsWanted::kPerHead, WeightsWanted::kAveraged}) {
      if (kind() == Kind::kFlash && wanted != WeightsWanted::kNone) break;
      call.need_weights = wanted;
      const auto answer = RunCall(call);
      const auto expected = RunCallByReference(call);
      ASSERT_TRUE(answer.ok() && expected.ok()) << answer.status() << expected.status();
      EXPECT_LE(LargestDifference(answer->out, expected->out), tolerance());
      EXPECT_LE(LargestDifference(answer->weights, expected->weights), 1e-5);
    }
  }
};

std::vector<uint8_t> RandomBools(uint64_t seed, int64_t count) {
  std::vector<uint8_t> bools;
  for (float value : CounterValues(seed, count)) bools.push_back(value > -0.4f ? 1 : 0);
  return bools;
}

TEST_P(ExactAttentionTest, EveryMask) {
  const TestCall::Shape shape;
  TestCall test(kind(), dtype(), shape, 1);
  ExpectReference(test.call);
  const std::vector<float> slopes{0.5f, 0.25f, 0.125f};
  const auto bools = RandomBools(5, 2 * 3 * 19 * 27);
  auto numbers = CounterValues(6, 2 * 3 * 19 * 27, 3);
  for (size_t i = 0; i < numbers.size(); i += 5) numbers[i] = kMinusInfinity;
  const auto f32 = Encode(numbers, DType::kF32), bf16 = Encode(numbers, DType::kBf16);
  const auto keys = RandomBools(7, 2 * 27);
  using Dims = std::array<int64_t, 4>;
  for (const Dims& dims : {Dims{}, Dims{2, 3, 19, 27}, Dims{1, 1, 19, 27}, Dims{2, 1, 1, 27},
                           Dims{1, 3, 19, 1}, Dims{1, 1, 1, 1}, Dims{2, 3, 1, 1}}) {
    for (const MaskTensor& tensor : {MaskTensor{MaskTensor::Type::kBool, bools.data(), dims},
                                     MaskTensor{MaskTensor::Type::kF32, f32.data(), dims},
                                     MaskTensor{MaskTensor::Type::kBf16, bf16.data(), dims}}) {
      for (int bits = 0; bits < 8; ++bits) {
        SCOPED_TRACE(testing::Message()
                     << "mask [" << dims[0] << ", " << dims[1] << ", " << dims[2] << ", " << dims[3]
                     << "] of type " << static_cast<int>(tensor.type) << ", bits " << bits);
        Mask mask{.tensor = tensor, .keys = {}};
        if (bits & 1) mask.keys = TensorView<const uint8_t, 1>(keys.data(), {2 * 27});
        if (bits & 2) mask.causal = true;
        if (bits & 4) mask.alibi_slopes = slopes;
        test.call.mask = mask;
        ExpectReference(test.call);
      }
    }
  }
}

TEST_P(ExactAttentionTest, KeyMasksWithEmptyEdges) {
  TestCall test(kind(), dtype(), {.batch = 3, .queries = 40, .keys = 40}, 2);
  std::vector<uint8_t> keys(120, 0);
  std::fill(keys.begin() + 7, keys.begin() + 30, uint8_t{1});              // both ends of the first
  std::fill(keys.begin() + 40, keys.begin() + 43, uint8_t{1});             // the second's last 37
  test.call.mask.keys = TensorView<const uint8_t, 1>(keys.data(), {120});  // all of the third
  ExpectReference(test.call);
  test.call.mask.causal = true;
  ExpectReference(test.call);
  test.call.mask.causal = false;
  const std::vector<float> slopes{0.5f, 0.25f, 0.125f};
  test.call.mask.alibi_slopes = slopes;
  ExpectReference(test.call);
  test.call.mask.window = 4;
  ExpectReference(test.call);
}

// The kernel takes fewer keys in larger steps, whose scores must not reach the mask behind them.
TEST_P(ExactAttentionTest, KeyMasksWithoutTheLastKeys) {
  for (const int64_t len : {136, 176, 200, 264, 272, 392}) {
    TestCall test(
        kind(), dtype(),
        {.batch = 1, .heads = 2, .queries = 50, .keys = len, .head_dim = 1, .value_dim = 1}, 2);
    for (int64_t end = len - 1; end > len - 24; --end) {
      std::vector<uint8_t> keys(static_cast<size_t>(len), 0);
      for (int64_t key = 0; key < end; key += key % 3 + 1) keys[static_cast<size_t>(key)] = 1;
      test.call.mask.keys = TensorView<const uint8_t, 1>(keys.data(), {len});
      ExpectReference(test.call);
    }
  }
}

TEST_P(ExactAttentionTest, RaggedSequences) {
  TestCall test(kind(), dtype(), {.heads = 2, .head_dim = 24, .value_dim = 20},
                {0, 1, 1, 18, 350, 351, 420}, {0, 5, 9, 10, 310, 310, 379}, 3);
  ExpectReference(test.call);
  test.call.mask.causal = true;
  ExpectReference(test.call);
  const auto keys = RandomBools(9, 379);
  test.call.mask.keys = TensorView<const uint8_t, 1>(keys.data(), {379});
  ExpectReference(test.call);
  // A mask over ragged sequences has the longest one's sizes.
  const auto bools = RandomBools(8, 332 * 300);
  test.call.mask.tensor = {MaskTensor::Type::kBool, bools.data(), {1, 1, 332, 300}};
  ExpectReference(test.call);
}

TEST_P(ExactAttentionTest, AwkwardSizes) {
  for (int64_t len : {1, 2, 15, 16, 17, 241, 530}) {
    for (int64_t dim : {1, 7, 64, 100}) {
      SCOPED_TRACE(testing::Message() << len << " tokens of " << dim);
      ExpectReference(TestCall(kind(), dtype(),
                               {.batch = 1,
                                .heads = 2,
                                .queries = len,
                                .keys = len,
                                .head_dim = dim,
                                .value_dim = dim},
                               4)
                          .call);
    }
  }
}

TEST_P(ExactAttentionTest, LengthOneGivesItsValue) {
  TestCall test(kind(), dtype(), {.batch = 1, .heads = 1, .queries = 1, .keys = 1}, 5);
  if (kind() == Kind::kLocal) test.call.mask.window = 0;
  const auto answer = RunCall(test.call);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(Encode(answer->out, dtype()), test.value);
}

TEST_P(ExactAttentionTest, HugeLogitsOfBothSigns) {
  // Scores of about ±1e4.
  TestCall test(kind(), dtype(), {.head_dim = 64, .value_dim = 64, .amplitude = 70}, 6);
  test.call.scale = 1;
  if (kind() == Kind::kLocal) test.call.mask.window = 5;
  const auto answer = RunCall(test.call);
  const auto expected = RunCallByReference(test.call);
  ASSERT_TRUE(answer.ok() && expected.ok());
  // f32 holds scores of 1e4 to 1e-3 only.
  EXPECT_LE(LargestDifference(answer->out, expected->out), dtype() == DType::kF32 ? 2e-3 : 2e-2);
}

TEST_P(ExactAttentionTest, EnormousLogitsChooseTheLargestKey) {
  for (const float amplitude : {1e5f, 1e6f}) {
    for (const int64_t len : {48, 530}) {
      SCOPED_TRACE(testing::Message() << len << " tokens, amplitude " << amplitude);
      TestCall test(kind(), dtype(),
                    {.batch = 1,
                     .heads = 2,
                     .queries = len,
                     .keys = len,
                     .head_dim = 64,
                     .value_dim = 64,
                     .amplitude = amplitude},
                    14);
      ExpectReference(test.call);
      test.call.mask.causal = true;
      ExpectReference(test.call);
    }
  }
}

TEST_P(ExactAttentionTest, MaskedRowsAreZeros) {
  TestCall test(kind(), dtype(), {.batch = 1, .heads = 2, .queries = 6, .keys = 9}, 7);
  std::vector<float> mask(6 * 9, 0);
  std::fill(mask.begin() + 2 * 9, mask.begin() + 3 * 9, kMinusInfinity);
  test.call.mask.tensor = {MaskTensor::Type::kF32, mask.data(), {1, 1, 6, 9}};
  if (kind() == Kind::kLocal) test.call.mask.window = 9;
  if (kind() != Kind::kFlash) test.call.need_weights = WeightsWanted::kPerHead;
  const auto answer = RunCall(test.call);
  ASSERT_TRUE(answer.ok()) << answer.status();
  for (size_t head = 0; head < 2; ++head) {
    for (size_t d = 0; d < 16; ++d) EXPECT_EQ(answer->out[(head * 6 + 2) * 16 + d], 0.0f);
    if (kind() == Kind::kFlash) continue;
    for (size_t query = 0; query < 6; ++query) {
      const auto row = answer->weights.begin() + static_cast<int64_t>((head * 6 + query) * 9);
      EXPECT_NEAR(std::accumulate(row, row + 9, 0.0), query == 2 ? 0 : 1, 1e-5);
    }
  }
}

TEST_P(ExactAttentionTest, PermutingKeysWithValuesChangesNothing) {
  if (kind() == Kind::kLocal || kind() == Kind::kStrided) return;  // where a key stands matters
  const TestCall::Shape shape{.batch = 1, .heads = 1, .queries = 10, .keys = 90};
  const TestCall straight(kind(), dtype(), shape, 8);
  TestCall turned(kind(), dtype(), shape, 8);
  const size_t row = straight.key.size() / 90;
  for (size_t key = 0; key < 90; ++key) {
    const size_t to = key * 37 % 90;
    std::copy_n(straight.key.begin() + static_cast<int64_t>(key * row), row,
                turned.key.begin() + static_cast<int64_t>(to * row));
    std::copy_n(straight.value.begin() + static_cast<int64_t>(key * row), row,
                turned.value.begin() + static_cast<int64_t>(to * row));
  }
  const auto a = RunCall(straight.call), b = RunCall(turned.call);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_LE(LargestDifference(a->out, b->out), tolerance());
}

TEST_P(ExactAttentionTest, CausalOutputIgnoresWhatFollows) {
  const TestCall::Shape shape{.batch = 1, .heads = 1, .queries = 600, .keys = 600};
  const TestCall before(kind(), dtype(), shape, 9);
  TestCall after(kind(), dtype(), shape, 9);
  const int64_t row = static_cast<int64_t>(after.key.size()) / 600;
  for (auto* operand : {&after.key, &after.value}) {
    std::fill(operand->begin() + 333 * row, operand->end(), std::byte{0x3f});
  }
  Call calls[] = {before.call, after.call};
  std::vector<float> out[2];
  for (size_t i = 0; i < 2; ++i) {
    calls[i].mask.causal = true;
    if (kind() == Kind::kLocal) calls[i].mask.window = 50;
    auto answer = RunCall(calls[i]);
    ASSERT_TRUE(answer.ok()) << answer.status();
    out[i] = std::move(answer->out);
  }
  EXPECT_NE(out[0], out[1]);
  for (auto& values : out) values.resize(333 * 16);
  EXPECT_EQ(out[0], out[1]);
}

TEST_P(ExactAttentionTest, AWindowOfEverythingIsNone) {
  if (kind() == Kind::kStrided) return;
  TestCall test(kind(), dtype(), {.queries = 300, .keys = 300}, 10);
  test.call.kind = Kind::kDotProduct;
  const auto full = RunCall(test.call);
  test.call.kind = kind();
  for (int64_t window : {int64_t{299}, int64_t{300}, std::numeric_limits<int64_t>::max()}) {
    test.call.mask.window = window;
    const auto windowed = RunCall(test.call);
    ASSERT_TRUE(full.ok() && windowed.ok()) << windowed.status();
    EXPECT_EQ(windowed->out, full->out) << window;
  }
}

TEST_P(ExactAttentionTest, BitsDoNotDependOnTheBatchNorTheThreads) {
  const TestCall::Shape shape{.heads = 3, .head_dim = 32, .value_dim = 32};
  TestCall batched(kind(), dtype(), shape, {0, 3, 303, 320, 900}, {0, 9, 309, 400, 980}, 11);
  if (kind() == Kind::kLocal) batched.call.mask.window = 60;
  const auto all = RunCall(batched.call, 1);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(RunCall(batched.call, 2)->out, all->out);
  EXPECT_EQ(RunCall(batched.call, 5)->out, all->out);
  const int64_t value_bytes = ValueBytes(dtype());
  for (size_t i = 0; i < 4; ++i) {
    const int64_t first_query = batched.query_starts[i], first_key = batched.key_starts[i];
    const int64_t query_starts[] = {0, batched.query_starts[i + 1] - first_query};
    const int64_t key_starts[] = {0, batched.key_starts[i + 1] - first_key};
    Call alone = batched.call;
    alone.queries = Sequences::Packed(query_starts);
    alone.keys = Sequences::Packed(key_starts);
    alone.query.values += first_query * 3 * 32 * value_bytes;
    alone.key.values += first_key * 3 * 32 * value_bytes;
    alone.value.values += first_key * 3 * 32 * value_bytes;
    const auto answer = RunCall(alone);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_TRUE(std::equal(answer->out.begin(), answer->out.end(),
                           all->out.begin() + first_query * 3 * 32));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ExactAttentionTest,
                         testing::Values(Parameter{Kind::kDotProduct, DType::kF32},
                                         Parameter{Kind::kDotProduct, DType::kBf16},
                                         Parameter{Kind::kFlash, DType::kF32},
                                         Parameter{Kind::kFlash, DType::kBf16},
                                         Parameter{Kind::kLocal, DType::kF32},
                                         Parameter{Kind::kLocal, DType::kBf16},
                                         Parameter{Kind::kStrided, DType::kF32},
                                         Parameter{Kind::kStrided, DType::kBf16}),
                         [](const auto& test) {
                           return std::string(FindOperator(test.param.kind)->name) + "_" +
                                  std::string(DTypeName(test.param.dtype));
                         });

TEST(StridedTest, EveryBlockSize) {
  for (int64_t block : {1, 2, 3, 7, 16, 40, 41, 60, 1000}) {
    for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{40, 40}, {40, 13}, {13, 60}}) {
      TestCall test(Kind::kStrided, DType::kF32,
                    {.batch = 1, .heads = 2, .queries = queries, .keys = keys}, 12);
      test.call.block = block;
      for (bool causal : {false, true}) {
        test.call.mask.causal = causal;
        test.call.need_weights = WeightsWanted::kPerHead;
        const auto answer = RunCall(test.call), expected = RunCallByReference(test.call);
        ASSERT_TRUE(answer.ok() && expected.ok()) << answer.status();
        EXPECT_LE(LargestDifference(answer->out, expected->out), 1e-5) << block;
        EXPECT_LE(LargestDifference(answer->weights, expected->weights), 1e-5) << block;
      }
    }
  }
}

TEST(StridedTest, ABlockOfEverythingIsFull) {
  TestCall test(Kind::kDotProduct, DType::kF32, {.queries = 30, .keys = 30}, 13);
  const auto full = RunCall(test.call);
  test.call.kind = Kind::kStrided;
  test.call.block = 30;
  const auto strided = RunCall(test.call);
  ASSERT_TRUE(full.ok() && strided.ok()) << strided.status();
  EXPECT_LE(LargestDifference(strided->out, full->out), 1e-6);
  test.call.block = 5;
  EXPECT_GT(LargestDifference(RunCall(test.call)->out, full->out), 1e-3);
}

TEST(StridedTest, OperationsAndScratchGrowAsTheyShould) {
  Call call = TestCall(Kind::kStrided, DType::kF32, {}, 1).call;
  call.queries = call.keys = Sequences::Dense(1, 1 << 10);
  const auto shorter = Measure(call, 2);
  call.queries = call.keys = Sequences::Dense(1, 1 << 16);
  const auto longer = Measure(call, 2);
  ASSERT_TRUE(shorter.ok() && longer.ok()) << longer.status();
  EXPECT_LE(longer->operations, shorter->operations * 64 * 8);  // n sqrt(n), and some n
  EXPECT_GE(longer->operations, shorter->operations * 64 * 4);
  EXPECT_LE(longer->scratch_bytes, shorter->scratch_bytes * 9);
  call.block = -1;
  EXPECT_EQ(Measure(call, 2).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ExactAttentionMeasureTest, WhatTheKindsDoNotDo) {
  TestCall flash(Kind::kFlash, DType::kF32, {}, 1);
  flash.call.need_weights = WeightsWanted::kPerHead;
  EXPECT_EQ(Measure(flash.call, 1).status().code(), absl::StatusCode::kUnimplemented);
  const TestCall local(Kind::kLocal, DType::kF32, {}, 1);
  EXPECT_EQ(Measure(local.call, 1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ExactAttentionMeasureTest, FlashScratchDoesNotGrowWithTheLength) {
  Call call = TestCall(Kind::kFlash, DType::kF32, {}, 1).call;
  int64_t bytes[2];
  for (int i = 0; i < 2; ++i) {
    call.queries = call.keys = Sequences::Dense(1, i == 0 ? 4096 : 1 << 20);
    const auto cost = Measure(call, 2);
    ASSERT_TRUE(cost.ok()) << cost.status();
    bytes[i] = cost->scratch_bytes;
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

}  // namespace
}  // namespace attendant::attention
