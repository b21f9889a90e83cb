// SPDX-License-Identifier: Apache-2.0
// Whole encoders on AMX, by its emulation: every family beside the level below, batches beside
// single sequences. On a machine with AMX the other tests of this folder do that for the real one.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/backends.h"
#include "tests/support/checkpoint.h"
#include "tests/support/golden.h"
#include "tests/support/one_token_pooling.h"

namespace attendant {
namespace {

using Prepare = absl::FunctionRef<std::unique_ptr<PreparedEncoder>(const Backend&, DType)>;

std::vector<std::vector<float>> StatesOf(const PreparedEncoder& encoder,
                                         const std::vector<TestSequence>& sequences) {
  const auto session = *encoder.NewSession({.max_batch_tokens = 640, .max_batch_sequences = 8}, 2);
  std::vector<std::vector<float>> states;
  for (const TestOutput& output : RunBatch(*session, sequences)) {
    states.push_back(output.last_hidden_state);
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    EXPECT_EQ(RunBatch(*session, {sequences[i]})[0].last_hidden_state, states[i])
        << "batched is not alone";
  }
  ExpectOneTokenPooledAsIfAllWereWanted(*session, sequences);
  return states;
}

void ExpectAsTheLevelBelow(Prepare prepare, const std::vector<TestSequence>& sequences) {
  const auto vectors = MakeCpuBackend({.isa = CpuIsa::kAvx512Bf16});
  if (!vectors.ok()) GTEST_SKIP() << "the emulation needs AVX512_BF16";
  const auto tiles = MakeCpuBackend({.isa = CpuIsa::kAmx});
  ASSERT_TRUE(tiles.ok()) << tiles.status();
  for (const auto& [dtype, allowed] : {std::pair{DType::kBf16, 5e-4}, {DType::kInt8, 5e-3}}) {
    SCOPED_TRACE(std::string(DTypeName(dtype)));
    const auto encoder = prepare(**tiles, dtype);
    EXPECT_EQ(encoder->info().matmul_implementation, "tiles:amx");
    const auto found = StatesOf(*encoder, sequences);
    const auto expected = StatesOf(*prepare(**vectors, dtype), sequences);
    for (size_t i = 0; i < sequences.size(); ++i) {
      EXPECT_LE(1 - Cosine(found[i], expected[i]), allowed) << "sequence " << i;
    }
    EXPECT_NE(found, expected) << "tiles sum in another order: were they used?";
  }
}

class AmxEmulationTest : public testing::TestWithParam<const char*> {};

TEST_P(AmxEmulationTest, ComputesWhatTheLevelBelowDoes) {
  const std::string directory = GoldenDirectory(GetParam());
  const absl::StatusOr<Checkpoint> checkpoint = LoadCheckpoint(directory);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ExpectAsTheLevelBelow([&](const Backend& backend,
                            DType dtype) { return PrepareCheckpoint(backend, directory, dtype); },
                        RandomSequences(checkpoint->config, {1, 40, 17, 33, 16}, 3));
}

INSTANTIATE_TEST_SUITE_P(Families, AmxEmulationTest, testing::ValuesIn(kTinyModels),
                         [](const auto& model) { return std::string(model.param); });

// MiniLM's layers, whose matmuls threads share by columns, and widths that fill no tile.
TEST(AmxEmulationShapesTest, WideAndOdd) {
  for (const auto& [hidden, heads, ffn] : {std::tuple{384, 12, 1536}, {130, 2, 258}}) {
    SCOPED_TRACE(hidden);
    const EncoderConfig config{.layers = 2,
                               .heads = heads,
                               .hidden = hidden,
                               .ffn = ffn,
                               .vocab = 50,
                               .max_positions = 160,
                               .segment_types = 2,
                               .layer_norm_epsilon = 1e-12f};
    ExpectAsTheLevelBelow(
        [&](const Backend& backend, DType dtype) {
          return *backend.Prepare(config, RandomWeights(config, 5), dtype);
        },
        RandomSequences(config, {1, 17, 64, 5, 150}, 3));
  }
}

// More keys than a block of the attention kernels has, and a window that leaves some out.
TEST(AmxEmulationShapesTest, Long) {
  for (const int64_t window : {0, 300}) {
    SCOPED_TRACE(window);
    EncoderConfig config{.layers = 2,
                         .heads = 2,
                         .hidden = 64,
                         .ffn = 96,
                         .vocab = 50,
                         .max_positions = 600,
                         .segment_types = 2,
                         .layer_norm_epsilon = 1e-12f,
                         .window = window};
    if (window > 0) config.local_layers.set(1);
    ExpectAsTheLevelBelow(
        [&](const Backend& backend, DType dtype) {
          return *backend.Prepare(config, RandomWeights(config, 5), dtype);
        },
        RandomSequences(config, {600, 17}, 3));
  }
}

}  // namespace
}  // namespace attendant
