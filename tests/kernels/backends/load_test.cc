// SPDX-License-Identifier: Apache-2.0
// What Prepare makes of weights does not depend on how many threads made it, and is all that stays.
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/backends.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

// Every width is a multiple of the tiles' on every processor (24, 32, 64 columns), so that no
// packed matrix is padded and weight_bytes can be stated exactly.
constexpr EncoderConfig kConfig{.layers = 3,
                                .heads = 4,
                                .hidden = 192,
                                .ffn = 384,
                                .vocab = 2500,
                                .max_positions = 64,
                                .segment_types = 2,
                                .layer_norm_epsilon = 1e-12f};

TEST(LoadTest, AnyNumberOfThreadsMakesTheSame) {
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kInt8}) {
    std::vector<std::vector<TestOutput>> outputs;
    for (int load_threads : {1, 2, 7}) {
      const auto backend = MakeCpuBackend({.load_threads = load_threads});
      ASSERT_TRUE(backend.ok()) << backend.status();
      if (!(*backend)->Supports(dtype).ok()) continue;
      const auto encoder = (*backend)->Prepare(kConfig, RandomWeights(kConfig, 3), dtype);
      ASSERT_TRUE(encoder.ok()) << encoder.status();
      const auto session =
          (*encoder)->NewSession({.max_batch_tokens = 128, .max_batch_sequences = 4}, 1);
      ASSERT_TRUE(session.ok()) << session.status();
      outputs.push_back(RunBatch(**session, RandomSequences(kConfig, {64, 9}, 5)));
    }
    for (const auto& output : outputs) {
      for (size_t i = 0; i < output.size(); ++i) {
        EXPECT_EQ(output[i].last_hidden_state, outputs[0][i].last_hidden_state);
      }
    }
  }
}

TEST(LoadTest, TheCheckpointIsLetGo) {
  const auto backend = MakeCpuBackend({.load_threads = 2});
  ASSERT_TRUE(backend.ok()) << backend.status();
  EncoderWeights weights = RandomWeights(kConfig, 3);
  const std::weak_ptr<const void> storage = weights.storage;
  const auto encoder = (*backend)->Prepare(kConfig, std::move(weights), DType::kF32);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  EXPECT_TRUE(storage.expired());
  const int64_t parameters =
      3 * (4 * 192 * 193 + 2 * 192 * 384 + 384 + 192 + 4 * 192) + (2500 + 64 + 2 + 2) * 192;
  EXPECT_EQ((*encoder)->info().weight_bytes, 4 * parameters);
}

}  // namespace
}  // namespace attendant
