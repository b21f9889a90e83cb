// SPDX-License-Identifier: Apache-2.0
// PyTorch's scaled_dot_product_attention against both ways to compute it.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "tests/kernels/attention/call_support.h"
#include "tests/kernels/attention/golden_cases.h"
#include "tests/support/counter_values.h"

namespace attendant::attention {
namespace {

// The mask of a case as make_golden.py makes it: a bool one, or numbers.
struct GoldenMask {
  GoldenMask(const JsonNode& json, DType dtype) : kind(Text(json, "mask")) {
    if (kind == "none") return;
    const std::vector<int64_t> sizes = Integers(json, "mask_dims");
    std::copy(sizes.begin(), sizes.end(), tensor.dims.begin());
    const int64_t count = sizes[0] * sizes[1] * sizes[2] * sizes[3];
    const auto noise = CounterValues(static_cast<uint64_t>(Integer(json, "seed") + 3), count, 2.0f);
    for (size_t i = 0; i < noise.size(); ++i) Add(noise[i], i % static_cast<size_t>(sizes[3]), i);
    if (keep.empty()) {
      encoded = Encode(numbers, dtype);
      tensor.type = dtype == DType::kBf16 ? MaskTensor::Type::kBf16 : MaskTensor::Type::kF32;
      tensor.values = encoded.data();
    } else {
      tensor.values = keep.data();
    }
  }

  void Add(float noise, size_t key, size_t index) {
    const bool kept = noise > -0.5f || key == 0;
    const size_t keys = static_cast<size_t>(tensor.dims[3]);
    if (kind == "additive") numbers.push_back(noise);
    if (kind == "all_minus_1e9") numbers.push_back(-1e9f);
    if (kind == "minus_inf") {
      numbers.push_back(kept ? 0.0f : -std::numeric_limits<float>::infinity());
    }
    if (kind == "minus_1e9") numbers.push_back(kept ? 0.0f : -1e9f);
    if (kind == "bool") keep.push_back(kept);
    if (kind == "key_padding") keep.push_back(index < keys || key < keys / 2);
  }

  std::string kind;
  MaskTensor tensor;
  std::vector<float> numbers;
  std::vector<std::byte> encoded;
  std::vector<uint8_t> keep;
};

class DotProductGoldenTest : public testing::TestWithParam<std::tuple<Kind, DType>> {};

TEST_P(DotProductGoldenTest, MatchesPyTorch) {
  const auto [kind, dtype] = GetParam();
  absl::StatusOr<GoldenFile> golden = GoldenFile::Open();
  ASSERT_TRUE(golden.ok()) << golden.status();
  const auto cases = golden->Cases("sdpa");
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_EQ(cases->size(), 20u);
  for (const JsonNode& json : *cases) {
    SCOPED_TRACE(Text(json, "name"));
    TestCall test(kind, dtype,
                  {.batch = Integer(json, "batch"),
                   .heads = Integer(json, "heads"),
                   .queries = Integer(json, "queries"),
                   .keys = Integer(json, "keys"),
                   .head_dim = Integer(json, "head_dim"),
                   .value_dim = Integer(json, "value_dim"),
                   .amplitude = static_cast<float>(Number(json, "amplitude"))},
                  static_cast<uint64_t>(Integer(json, "seed")));
    const GoldenMask mask(json, dtype);
    test.call.mask.tensor = mask.tensor;
    test.call.mask.causal = Flag(json, "causal");
    if (json.Has("scale")) test.call.scale = static_cast<float>(Number(json, "scale"));
    const auto expected = golden->Floats(Text(json, "name") + "/" + std::string(DTypeName(dtype)));
    ASSERT_FALSE(expected.empty());
    for (const auto& answer : {RunCall(test.call), RunCallByReference(test.call)}) {
      ASSERT_TRUE(answer.ok()) << answer.status();
      const auto rows = ChosenRows(answer->out, test.call.value.dim, Integer(json, "step"));
      EXPECT_LE(LargestDifference(rows, expected), dtype == DType::kF32 ? 1e-5 : 1e-2);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DotProductGoldenTest,
                         testing::Combine(testing::Values(Kind::kDotProduct, Kind::kFlash),
                                          testing::Values(DType::kF32, DType::kBf16)),
                         [](const auto& parameter) {
                           return "Kind" +
                                  std::to_string(static_cast<int>(std::get<0>(parameter.param))) +
                                  "_" + std::string(DTypeName(std::get<1>(parameter.param)));
                         });

}  // namespace
}  // namespace attendant::attention
