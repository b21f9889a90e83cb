// SPDX-License-Identifier: Apache-2.0
// Whole encoders on AVX-VNNI, AVX-512 and AMX, by their emulation: every family beside a level
// below, batches beside single sequences. On a machine that has them the other tests of this folder
// do that for the real ones.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/checkpoint.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/cpu_isa.h"
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

struct Level {
  cpu::CpuIsa isa;
  DType dtype;
};
struct Comparison {
  Level level, below;
  double allowed;  // 1 - cosine of the states
};
constexpr Comparison kComparisons[] = {
    {{cpu::CpuIsa::kAvx2Vnni, DType::kInt8}, {cpu::CpuIsa::kAvx2, DType::kInt8}, 0},
    {{cpu::CpuIsa::kAvx512, DType::kF32}, {cpu::CpuIsa::kAvx2, DType::kF32}, 1e-6},
    {{cpu::CpuIsa::kAvx512, DType::kInt8}, {cpu::CpuIsa::kAvx2, DType::kInt8}, 5e-3},
    {{cpu::CpuIsa::kAvx512Vnni, DType::kInt8}, {cpu::CpuIsa::kAvx512, DType::kInt8}, 0},
    {{cpu::CpuIsa::kAvx512Bf16, DType::kBf16}, {cpu::CpuIsa::kAvx512, DType::kF32}, 5e-4},
    {{cpu::CpuIsa::kAmx, DType::kBf16}, {cpu::CpuIsa::kAvx512Bf16, DType::kBf16}, 5e-4},
    {{cpu::CpuIsa::kAmx, DType::kInt8}, {cpu::CpuIsa::kAvx512Bf16, DType::kInt8}, 5e-3},
};

std::vector<std::vector<float>> StatesAt(const Level& level, Prepare prepare,
                                         const std::vector<TestSequence>& sequences) {
  const auto backend = *MakeCpuBackend({.isa = level.isa});
  const auto encoder = prepare(*backend, level.dtype);
  EXPECT_EQ(encoder->info().matmul_implementation,
            absl::StrCat("tiles:", cpu::CpuIsaName(level.isa)));
  return StatesOf(*encoder, sequences);
}

void ExpectAsTheLevelsBelow(Prepare prepare, const std::vector<TestSequence>& sequences) {
  for (const auto& [level, below, allowed] : kComparisons) {
    SCOPED_TRACE(absl::StrCat(cpu::CpuIsaName(level.isa), " ", DTypeName(level.dtype)));
    const auto found = StatesAt(level, prepare, sequences);
    const auto expected = StatesAt(below, prepare, sequences);
    if (allowed == 0) {
      EXPECT_EQ(found, expected) << "sums of integers are exact";
      continue;
    }
    for (size_t i = 0; i < sequences.size(); ++i) {
      EXPECT_LE(1 - Cosine(found[i], expected[i]), allowed) << "sequence " << i;
    }
    EXPECT_NE(found, expected) << "this level sums in another order: was it used?";
  }
}

class IsaEmulationTest : public testing::TestWithParam<const char*> {};

TEST_P(IsaEmulationTest, ComputesWhatTheLevelsBelowDo) {
  const std::string directory = GoldenDirectory(GetParam());
  const absl::StatusOr<Checkpoint> checkpoint = LoadCheckpoint(directory);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ExpectAsTheLevelsBelow([&](const Backend& backend,
                             DType dtype) { return PrepareCheckpoint(backend, directory, dtype); },
                         RandomSequences(checkpoint->config, {1, 40, 17, 33, 16}, 3));
}

INSTANTIATE_TEST_SUITE_P(Families, IsaEmulationTest, testing::ValuesIn(kTinyModels),
                         [](const auto& model) { return std::string(model.param); });

// MiniLM's layers, whose matmuls threads share by columns, and widths that fill no tile.
TEST(IsaEmulationShapesTest, WideAndOdd) {
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
    ExpectAsTheLevelsBelow(
        [&](const Backend& backend, DType dtype) {
          return *backend.Prepare(config, RandomWeights(config, 5), dtype);
        },
        RandomSequences(config, {1, 17, 64, 5, 150}, 3));
  }
}

// More keys than a block of the attention kernels has, and a window that leaves some out.
TEST(IsaEmulationShapesTest, Long) {
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
    ExpectAsTheLevelsBelow(
        [&](const Backend& backend, DType dtype) {
          return *backend.Prepare(config, RandomWeights(config, 5), dtype);
        },
        RandomSequences(config, {600, 17}, 3));
  }
}

}  // namespace
}  // namespace attendant
