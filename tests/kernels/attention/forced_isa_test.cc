// SPDX-License-Identifier: Apache-2.0
// Every instruction set this machine can be held down to: all operators and modules stay within it,
// and are as right as with the best.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/attention/exact/exact_attention.h"
#include "kernels/attention/modules/module.h"
#include "kernels/attention/registry.h"
#include "kernels/attention/scored/scored_kernels.h"
#include "kernels/checkpoints/attention_module.h"
#include "kernels/cpu/matmul/onednn_matmul.h"
#include "kernels/cpu/simd/isa_level.h"
#include "tests/kernels/attention/scored/scored_call.h"
#include "tests/support/counter_values.h"
#include "tests/support/in_child.h"

namespace attendant::attention {
namespace {

class ForcedIsaTest : public testing::TestWithParam<cpu::CpuIsa> {
 protected:
  void SetUp() override {
    const auto available = cpu::ChooseCpuIsa(isa(), cpu::ReadCpuIdWords());
    if (!available.ok()) GTEST_SKIP() << available.status();
  }
  static cpu::CpuIsa isa() { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Levels, ForcedIsaTest, testing::ValuesIn(cpu::kCpuIsaLevels),
                         [](const auto& parameter) {
                           return std::string(cpu::CpuIsaName(parameter.param));
                         });

struct Tolerance {
  double out, weights;
};
constexpr Tolerance kF32Tolerance{.out = 1e-5, .weights = 1e-5};
constexpr Tolerance kBf16Tolerance{.out = 1e-2, .weights = 1e-5};
// What projections and layers hand on is rounded too, and the values reach 4.
constexpr Tolerance kBf16ModuleTolerance{.out = 3e-2, .weights = 3e-3};

const cpu::IsaLevel* LevelOf(cpu::CpuIsa isa) { return *cpu::FindIsaLevel(isa); }

void ExpectCloseToReference(Call call, const Tolerance& tolerance) {
  call.need_weights =
      FindOperator(call.kind)->gives_weights ? WeightsWanted::kPerHead : WeightsWanted::kNone;
  const auto expected = RunCallByReference(call), actual = RunCall(call);
  ASSERT_TRUE(expected.ok() && actual.ok()) << expected.status() << actual.status();
  EXPECT_LE(LargestDifference(actual->out, expected->out), tolerance.out);
  if (call.need_weights == WeightsWanted::kNone) return;
  EXPECT_LE(LargestDifference(actual->weights, expected->weights), tolerance.weights);
}

TEST_P(ForcedIsaTest, OperatorsStayWithinIt) {
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const Operator* op : Operators()) {
      if (op->kind == Kind::kMultiHead || op->kind == Kind::kTransformer) continue;
      SCOPED_TRACE(testing::Message() << op->name << " " << std::string(DTypeName(dtype)));
      ScoredCall test(op->kind, dtype, {.queries = 30, .keys = 65, .head_dim = 33});
      test.call.isa = LevelOf(isa());
      test.call.mask.window = op->kind == Kind::kLocal ? 7 : -1;
      ExpectCloseToReference(test.call, dtype == DType::kF32 ? kF32Tolerance : kBf16Tolerance);
    }
    const Call call{.dtype = dtype, .isa = LevelOf(isa())};
    EXPECT_EQ(FlashAttentionOf(call).isa(), cpu::CpuIsaName(isa()));
    EXPECT_EQ(&ScoredKernelsOf(call),
              isa() < cpu::CpuIsa::kAvx512 ? &kAvx2ScoredKernels : &kAvx512ScoredKernels);
  }
}

// In bf16 where that has fast matmuls at this level, else it is refused.
void LookAtModules(cpu::CpuIsa isa) {
  ASSERT_TRUE(cpu::LimitOneDnn(isa).ok());
  for (const char* name : {"mha_cross", "encoder_post"}) {
    const auto checkpoint = LoadAttentionModule(std::string("tests/golden/attention/") + name);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const ModuleConfig& config = checkpoint->config;
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      SCOPED_TRACE(testing::Message() << name << " " << std::string(DTypeName(dtype)));
      const auto module = MakeModule(config, checkpoint->weights, dtype, LevelOf(isa));
      if (dtype == DType::kBf16 && isa < cpu::CpuIsa::kAvx512Bf16) {
        EXPECT_EQ(module.status().code(), absl::StatusCode::kUnimplemented) << module.status();
        continue;
      }
      ASSERT_TRUE(module.ok()) << module.status();
      EXPECT_EQ((*module)->isa_name(), cpu::CpuIsaName(isa));
      TestCall test((*module)->kind(), dtype,
                    {.batch = 2, .heads = 1, .queries = 19, .keys = 19, .head_dim = config.hidden},
                    3);
      const auto key = Encode(CounterValues(1, 2 * 19 * config.key_dim), dtype);
      const auto value = Encode(CounterValues(2, 2 * 19 * config.value_dim), dtype);
      test.call.key = InputRows::HeadsFirst(key.data(), 1, config.key_dim, 19);
      test.call.value = InputRows::HeadsFirst(value.data(), 1, config.value_dim, 19);
      test.call.module = module->get();
      ExpectCloseToReference(test.call,
                             dtype == DType::kF32 ? kF32Tolerance : kBf16ModuleTolerance);
    }
  }
}

TEST_P(ForcedIsaTest, ModulesStayWithinIt) {
  InChild([] { LookAtModules(isa()); });
}

// Calls of one process may differ in it, whatever ran before.
TEST_P(ForcedIsaTest, BelongsToTheCall) {
  ScoredCall best(Kind::kLinear, DType::kF32, {});
  ASSERT_TRUE(RunCall(best.call).ok());
  ScoredCall test(Kind::kLinear, DType::kF32, {});
  test.call.isa = LevelOf(isa());
  ExpectCloseToReference(test.call, kF32Tolerance);
}

TEST(IsaTest, ACallWithoutItIsUnavailable) {
  ScoredCall test(Kind::kLinear, DType::kF32, {});
  test.call.isa = nullptr;
  EXPECT_EQ(Measure(test.call, 1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(FindIsa("mmx").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace attendant::attention
