// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/registry.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/kernels/attention/call_support.h"

namespace attendant::attention {
namespace {

TEST(RegistryTest, HasEveryKindOnceInOrder) {
  const auto operators = Operators();
  ASSERT_EQ(operators.size(), static_cast<size_t>(Kind::kTransformer) + 1);
  std::set<std::string> names;
  for (size_t i = 0; i < operators.size(); ++i) {
    const Operator& op = *operators[i];
    EXPECT_EQ(static_cast<size_t>(op.kind), i);
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_EQ(FindOperator(op.kind), &op);
    EXPECT_EQ(FindOperator(op.name), &op);
    for (const char* text : {op.title, op.formula, op.time, op.memory, op.use}) {
      EXPECT_NE(std::string(text), "") << op.name;
    }
    EXPECT_TRUE(op.measure != nullptr && op.run != nullptr && op.reference != nullptr) << op.name;
  }
  EXPECT_EQ(FindOperator("no such"), nullptr);
  EXPECT_EQ(FindOperator(static_cast<Kind>(99)), nullptr);
}

TEST(RegistryTest, RunRefusesScratchThatIsTooSmallOrNotAligned) {
  const TestCall test(Kind::kDotProduct, DType::kF32, {}, 1);
  const auto cost = Measure(test.call, 1);
  ASSERT_TRUE(cost.ok()) << cost.status();
  ThreadPool pool(1);
  std::vector<float> out(static_cast<size_t>(cost->out_bytes) / sizeof(float));
  const Outputs outputs{
      .out = OutputRows::HeadsFirst(reinterpret_cast<std::byte*>(out.data()), 3, 16, 19)};
  const auto bytes = static_cast<size_t>(cost->scratch_bytes);
  std::vector<std::byte> memory(bytes + 2 * kScratchAlignment);
  const size_t skip =
      kScratchAlignment - reinterpret_cast<uintptr_t>(memory.data()) % kScratchAlignment;
  const std::span<std::byte> aligned = std::span(memory).subspan(skip);
  EXPECT_TRUE(attention::Run(test.call, pool, aligned.first(bytes), outputs).ok());
  EXPECT_EQ(attention::Run(test.call, pool, aligned.first(bytes - 1), outputs).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(attention::Run(test.call, pool, aligned.subspan(4, bytes), outputs).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace attendant::attention
