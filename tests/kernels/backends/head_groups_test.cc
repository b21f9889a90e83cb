// SPDX-License-Identifier: Apache-2.0
// A masked language model's head keeps the logits of some sequences at a time: a large vocabulary
// takes several such groups for a batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/backends/backends.h"
#include "kernels/backends/heads.h"
#include "kernels/core/threads/thread_pool.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using testing::SizeIs;

constexpr int64_t kVocab = int64_t{1} << 18;  // 16 rows of it are kept at a time

// Sequences of one token, more than a group of rows.
TEST(HeadGroupsTest, SequencesOfAllGroupsHaveTheirOwnResults) {
  constexpr int32_t kMaskId = 4;
  constexpr SessionLimits kLimits{.max_batch_tokens = 20, .max_batch_sequences = 20};
  constexpr EncoderConfig kConfig{.layers = 1,
                                  .heads = 1,
                                  .hidden = 32,
                                  .ffn = 32,
                                  .vocab = 101,
                                  .max_positions = 64,
                                  .segment_types = 2,
                                  .layer_norm_epsilon = 1e-12f};
  const auto backend = MakeBackend("cpu", {.load_threads = 2});
  if (!backend.ok()) GTEST_SKIP() << backend.status();
  const auto encoder = (*backend)->Prepare(kConfig, RandomWeights(kConfig, 7), DType::kF32);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> floats(static_cast<size_t>(kVocab * kConfig.hidden));
  for (float& value : floats) value = normal(random);
  TokenHead weights{.kind = TokenHeadKind::kMaskedLm, .norm_epsilon = 1e-5f};
  weights.dense.weight = {floats.data(), {kConfig.hidden, kConfig.hidden}};
  weights.norm = {.gamma = {floats.data(), {kConfig.hidden}},
                  .beta = {floats.data(), {kConfig.hidden}}};
  weights.out.weight = {floats.data(), {kVocab, kConfig.hidden}};
  weights.options = {.splade = SpladeOptions{}, .mask_id = kMaskId};
  const auto head = MakeHead(weights, **encoder);
  ASSERT_TRUE(head.ok()) << head.status();
  const auto runner = (*head)->NewRunner(kLimits, 2);
  ASSERT_TRUE(runner.ok()) << runner.status();
  ThreadPool pool(2);
  const std::vector<int32_t> ids = {kMaskId};
  for (const TaskKind kind : {TaskKind::kSparse, TaskKind::kFillMask}) {
    const TaskOptions options{.kind = kind, .top_k = 3};
    std::vector<HeadResult> together(static_cast<size_t>(kLimits.max_batch_tokens));
    std::vector<HeadInput> inputs;
    for (HeadResult& result : together) {
      const float* states = floats.data() + static_cast<int64_t>(inputs.size()) * kConfig.hidden;
      inputs.push_back({.options = &options,
                        .token_ids = ids,
                        .states = {states, {1, kConfig.hidden}},
                        .result = &result});
    }
    ASSERT_TRUE((*runner)->Run(inputs, pool).ok());
    for (size_t i = 0; i < inputs.size(); ++i) {
      HeadResult alone;
      inputs[i].result = &alone;
      ASSERT_TRUE((*runner)->Run({&inputs[i], 1}, pool).ok());
      EXPECT_THAT(together[i].indices, SizeIs(3));
      EXPECT_EQ(together[i].indices, alone.indices);
      EXPECT_EQ(together[i].values, alone.values);
    }
  }
}

}  // namespace
}  // namespace attendant
