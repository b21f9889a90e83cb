// SPDX-License-Identifier: Apache-2.0
// Every back end and instruction set of this machine against transformers' numbers.
#include <gtest/gtest.h>

#include "kernels/backends/backends.h"
#include "tests/support/backends.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

// What the issue of f32 promises; the reference sums in double and is held to the same.
constexpr float kHiddenTolerance = 2e-5f;
constexpr float kEmbeddingTolerance = 1e-5f;

void ExpectGolden(const Backend& backend, const std::string& directory, const std::string& model,
                  int64_t max_reference_tokens) {
  const auto encoder = PrepareCheckpoint(backend, directory);
  const auto cases = ReadGoldenCases(model);
  ASSERT_TRUE(cases.ok()) << cases.status();
  auto session = encoder->NewSession({.max_batch_tokens = 512, .max_batch_sequences = 4}, 2);
  ASSERT_TRUE(session.ok()) << session.status();
  int compared = 0;
  for (const GoldenCase& golden : *cases) {
    if (backend.name() == "reference" &&
        static_cast<int64_t>(golden.token_ids.size()) > max_reference_tokens) {
      continue;
    }
    SCOPED_TRACE(golden.name);
    const auto outputs = RunBatch(**session, {{golden.token_ids, golden.positions, golden.segment_ids}});
    if (!golden.last_hidden_state.empty()) {
      EXPECT_LE(LargestDifference(outputs[0].last_hidden_state, golden.last_hidden_state),
                kHiddenTolerance);
      ++compared;
    }
    if (!golden.embedding.empty()) {
      EXPECT_LE(LargestDifference(outputs[0].pooled, golden.embedding), kEmbeddingTolerance);
      ++compared;
    }
  }
  EXPECT_GE(compared, 4);
}

TEST(ParityTest, TinyModels) {
  for (const NamedBackend& named : AvailableBackends()) {
    for (const char* model : kTinyModels) {
      SCOPED_TRACE(named.name + " " + model);
      ExpectGolden(*named.backend, GoldenDirectory(model), model, 1000);
    }
  }
}

TEST(ParityTest, AllMiniLmL6V2) {
  const auto directory = RealModelDirectory();
  ASSERT_TRUE(directory.ok()) << directory.status();
  for (const NamedBackend& named : AvailableBackends()) {
    SCOPED_TRACE(named.name);
    // The plain loops take 20 ms a token: the short texts say enough about them.
    ExpectGolden(*named.backend, *directory, "all-MiniLM-L6-v2", 8);
  }
}

TEST(BackendsTest, NamesAreChecked) {
  EXPECT_TRUE(MakeBackend("auto").ok());
  EXPECT_EQ((*MakeBackend("reference"))->name(), "reference");
  EXPECT_EQ(MakeBackend("gpu").status().code(), absl::StatusCode::kInvalidArgument);
  const auto backend = *MakeBackend("reference");
  EXPECT_EQ(*ChooseDType("auto", *backend), DType::kF32);
  EXPECT_EQ(*ChooseDType("int8", *backend), DType::kInt8);
  EXPECT_EQ(ChooseDType("fp64", *backend).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace attendant
