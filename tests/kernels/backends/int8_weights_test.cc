// SPDX-License-Identifier: Apache-2.0
// Weights that 8 bits have no room for.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/backends.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

// Rows of the feed-forward network are long enough for a weight to be far off the others.
constexpr EncoderConfig kConfig{.layers = 1,
                                .heads = 4,
                                .hidden = 64,
                                .ffn = 512,
                                .vocab = 101,
                                .max_positions = 64,
                                .segment_types = 2,
                                .layer_norm_epsilon = 1e-5f};
// Without an outlier's part, or with that of the zero point, states differ by 0.5 and more.
constexpr float kTolerance = 0.25f;
constexpr SessionLimits kLimits{.max_batch_tokens = 256, .max_batch_sequences = 4};

EncoderWeights WithOutliers() {
  EncoderWeights weights = RandomWeights(kConfig, 7);
  auto* const down = const_cast<float*>(weights.layers[0].ffn_down.weight.data());
  for (int64_t i = 0; i < 12; ++i) down[5 * i * kConfig.ffn + 40 * i] = i % 2 == 0 ? 6.0f : -6.0f;
  return weights;
}

TEST(Int8WeightsTest, OutliersCountInEveryRow) {
  const auto backends = AvailableBackends();
  const std::vector<TestSequence> sequences = RandomSequences(kConfig, {9, 40, 3, 50}, 11);
  const auto run = [&sequences](const Backend& backend, DType dtype) {
    const auto encoder = backend.Prepare(kConfig, WithOutliers(), dtype);
    EXPECT_TRUE(encoder.ok()) << encoder.status();
    return RunBatch(**(*encoder)->NewSession(kLimits, 2), sequences);
  };
  const std::vector<TestOutput> expected = run(*backends.front().backend, DType::kF32);
  for (const NamedBackend& named : backends) {
    if (named.backend->name() != "cpu" || !named.backend->Supports(DType::kInt8).ok()) continue;
    const std::vector<TestOutput> outputs = run(*named.backend, DType::kInt8);
    for (size_t i = 0; i < sequences.size(); ++i) {
      EXPECT_LT(LargestDifference(outputs[i].last_hidden_state, expected[i].last_hidden_state),
                kTolerance)
          << named.name << ", sequence " << i;
    }
  }
}

}  // namespace
}  // namespace attendant
