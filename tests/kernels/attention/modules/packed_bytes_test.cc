// SPDX-License-Identifier: Apache-2.0
// The bound on the bytes of packed weights, for which servers account before they pack.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/attention/modules/module.h"
#include "kernels/cpu/simd/cpu_isa.h"
#include "kernels/cpu/simd/isa_level.h"

namespace attendant::attention {
namespace {

struct Widths {
  int64_t hidden, keys, values;
};

class PackedBytesTest : public testing::TestWithParam<Widths> {
 protected:
  // [hidden, inputs], with a bias.
  LinearWeights Linear(int64_t inputs) const {
    return {.weight = {ones_.data(), {GetParam().hidden, inputs}},
            .bias = {ones_.data(), {GetParam().hidden}}};
  }

  const std::vector<float> ones_ = std::vector<float>(10'000, 1.0f);
};

TEST_P(PackedBytesTest, AreAtMostTheBound) {
  const auto [hidden, keys, values] = GetParam();
  ModuleWeights weights;
  weights.attention.query = weights.attention.attention_output = Linear(hidden);
  weights.attention.key = Linear(keys);
  weights.attention.value = Linear(values);
  const int64_t bound = 2 * MaxPackedBytes(hidden, hidden) + MaxPackedBytes(hidden, keys) +
                        MaxPackedBytes(hidden, values);
  const ModuleConfig config{.type = ModuleType::kMultiHead,
                            .heads = 1,
                            .hidden = hidden,
                            .key_dim = keys,
                            .value_dim = values};
  for (const cpu::CpuIsa isa : cpu::kCpuIsaLevels) {
    for (const cpu::MatmulChoice matmul : {cpu::MatmulChoice::kTiles, cpu::MatmulChoice::kOneDnn}) {
      const auto level = cpu::FindIsaLevel(isa, matmul);
      if (!level.ok()) continue;  // this machine lacks it
      for (const DType dtype : {DType::kF32, DType::kBf16}) {
        const auto module = MakeModule(config, weights, dtype, *level);
        if (absl::IsUnimplemented(module.status())) continue;  // no fast bf16
        ASSERT_TRUE(module.ok()) << module.status();
        EXPECT_LE((*module)->weight_bytes(), bound)
            << cpu::CpuIsaName(isa) << " in " << DTypeName(dtype);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackedBytesTest,
                         testing::Values(Widths{1, 999, 1000}, Widths{64, 64, 64},
                                         Widths{65, 1, 129}));

}  // namespace
}  // namespace attendant::attention
