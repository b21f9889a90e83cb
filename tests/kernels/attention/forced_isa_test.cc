// SPDX-License-Identifier: Apache-2.0
// Every instruction set this machine can be held down to: all operators and modules stay within it,
// and are as right as with the best.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/attention/exact/exact_attention.h"
#include "kernels/attention/modules/module.h"
#include "kernels/attention/registry.h"
#include "kernels/attention/scored/scored_kernels.h"
#include "kernels/cpu/simd/cpu_isa.h"
#include "kernels/io/attention_module.h"
#include "tests/kernels/attention/scored/scored_call.h"
#include "tests/support/counter_values.h"
#include "tests/support/in_child.h"

namespace attendant::attention {
namespace {

class ForcedIsaTest : public testing::TestWithParam<CpuIsa> {
 protected:
  void SetUp() override {
    const auto available = ChooseCpuIsa(isa(), ReadCpuIdWords());
    if (!available.ok()) GTEST_SKIP() << available.status();
  }
  static CpuIsa isa() { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Levels, ForcedIsaTest,
                         testing::Values(CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAvx512Vnni,
                                         CpuIsa::kAvx512Bf16, CpuIsa::kAmx),
                         [](const auto& parameter) {
                           return std::string(CpuIsaName(parameter.param));
                         });

struct Tolerance {
  double out, weights;
};
constexpr Tolerance kF32Tolerance{.out = 1e-5, .weights = 1e-5};
constexpr Tolerance kBf16Tolerance{.out = 1e-2, .weights = 1e-5};
// What projections and layers hand on is rounded too, and the values reach 4.
constexpr Tolerance kBf16ModuleTolerance{.out = 3e-2, .weights = 3e-3};

void ExpectCloseToReference(Call call, const Tolerance& tolerance) {
  call.weights =
      FindOperator(call.kind)->gives_weights ? WeightsWanted::kPerHead : WeightsWanted::kNone;
  const auto expected = RunCallByReference(call), actual = RunCall(call);
  ASSERT_TRUE(expected.ok() && actual.ok()) << expected.status() << actual.status();
  EXPECT_LE(LargestDifference(actual->out, expected->out), tolerance.out);
  if (call.weights == WeightsWanted::kNone) return;
  EXPECT_LE(LargestDifference(actual->weights, expected->weights), tolerance.weights);
}

void LookAtOperators(CpuIsa isa) {
  ASSERT_TRUE(LimitCpuIsa(isa).ok());
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const Operator* op : Operators()) {
      if (op->kind == Kind::kMultiHead || op->kind == Kind::kTransformer) continue;
      SCOPED_TRACE(testing::Message() << op->name << " " << std::string(DTypeName(dtype)));
      FamilyCall test(op->kind, dtype, {.queries = 30, .keys = 65, .head_dim = 33});
      test.call.mask.window = op->kind == Kind::kLocal ? 7 : -1;
      ExpectCloseToReference(test.call, dtype == DType::kF32 ? kF32Tolerance : kBf16Tolerance);
    }
    EXPECT_EQ(SharedFlashAttention(dtype)->isa(), CpuIsaName(isa));
  }
  EXPECT_EQ(*FindScoredKernels(),
            isa == CpuIsa::kAvx2 ? &kAvx2ScoredKernels : &kAvx512ScoredKernels);
}

TEST_P(ForcedIsaTest, OperatorsStayWithinIt) {
  InChild([] { LookAtOperators(isa()); });
}

// In bf16 where that has fast matmuls at this level, else it is refused.
void LookAtModules(CpuIsa isa) {
  ASSERT_TRUE(LimitCpuIsa(isa).ok());
  for (const char* name : {"mha_cross", "encoder_post"}) {
    const auto checkpoint = LoadAttentionModule(std::string("tests/golden/attention/") + name);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const ModuleConfig& config = checkpoint->config;
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      SCOPED_TRACE(testing::Message() << name << " " << std::string(DTypeName(dtype)));
      const auto module = MakeModule(config, checkpoint->weights, dtype);
      if (dtype == DType::kBf16 && isa < CpuIsa::kAvx512Bf16) {
        EXPECT_EQ(module.status().code(), absl::StatusCode::kUnimplemented) << module.status();
        continue;
      }
      ASSERT_TRUE(module.ok()) << module.status();
      EXPECT_EQ((*module)->isa(), CpuIsaName(isa));
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

// An operator that ran before has settled what it computes with.
void LookAtWhatComesTooLate(CpuIsa isa) {
  FamilyCall test(Kind::kLinear, DType::kF32, {});
  ASSERT_TRUE(RunCall(test.call).ok());
  const absl::Status status = LimitCpuIsa(isa);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("has computed already"));
}

TEST_P(ForcedIsaTest, ComesBeforeTheFirstOperator) {
  InChild([] { LookAtWhatComesTooLate(isa()); });
}

}  // namespace
}  // namespace attendant::attention
