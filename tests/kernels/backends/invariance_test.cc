// SPDX-License-Identifier: Apache-2.0
// A sequence's answer is the same, bit for bit, whatever it is batched with, wherever it stands,
// however many threads compute it, and however often.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/support/backends.h"
#include "tests/support/checkpoint.h"
#include "tests/support/one_token_pooling.h"

namespace attendant {
namespace {

constexpr SessionLimits kLimits{.max_batch_tokens = 2048, .max_batch_sequences = 64};

// Lengths at the edges of register tiles, row blocks and query pieces; one long among short ones.
const std::vector<int64_t> kLens = {1,  2,  3,  5,  6,  7,   15,  16,  17, 31,
                                    33, 48, 63, 64, 65, 127, 129, 241, 500};

// Wide enough that oneDNN would split k for a single row (k = 1536).
constexpr EncoderConfig kConfig{.layers = 2,
                                .heads = 6,
                                .hidden = 384,
                                .ffn = 1536,
                                .vocab = 101,
                                .max_positions = 512,
                                .segment_types = 2,
                                .layer_norm_epsilon = 1e-12f};

// What a GPU's emulation does in seconds: two heads, each of two columns of tensor matmuls.
constexpr EncoderConfig kSmallConfig{.layers = 2,
                                     .heads = 2,
                                     .hidden = 64,
                                     .ffn = 96,
                                     .vocab = 101,
                                     .max_positions = 512,
                                     .segment_types = 2,
                                     .layer_norm_epsilon = 1e-12f};

bool IsEmulated(const NamedBackend& named) { return named.name == "cuda/emulated"; }

class InvarianceTest : public testing::TestWithParam<std::tuple<int, DType>> {
 protected:
  void SetUp() override {
    backends_ = AvailableBackends();
    // The reference computes each sequence by itself; what it would show here costs minutes.
    backends_.erase(backends_.begin());
    ASSERT_FALSE(backends_.empty());
    std::erase_if(backends_, [](const NamedBackend& named) {
      const absl::Status supported = named.backend->Supports(dtype());
      if (!supported.ok())
        std::printf("skipping %s: %s\n", named.name.c_str(), supported.ToString().c_str());
      return !supported.ok();
    });
    // Threads are the CPU's.
    if (threads() > 1) std::erase_if(backends_, IsEmulated);
    if (backends_.empty()) GTEST_SKIP() << "no fast " << DTypeName(dtype()) << " on this machine";
  }
  static int threads() { return std::get<0>(GetParam()); }
  static DType dtype() { return std::get<1>(GetParam()); }

  std::unique_ptr<PreparedEncoder> Prepare(const NamedBackend& named) {
    const EncoderConfig& config = IsEmulated(named) ? kSmallConfig : kConfig;
    auto encoder = named.backend->Prepare(config, RandomWeights(config, 7), dtype());
    EXPECT_TRUE(encoder.ok()) << encoder.status();
    return *std::move(encoder);
  }

  std::vector<NamedBackend> backends_;
};

void ExpectSameBits(const TestOutput& a, const TestOutput& b) {
  EXPECT_EQ(a.last_hidden_state, b.last_hidden_state);
  EXPECT_EQ(a.pooled, b.pooled);
}

TEST_P(InvarianceTest, BatchedEqualsAlone) {
  for (const NamedBackend& named : backends_) {
    SCOPED_TRACE(named.name);
    const auto encoder = Prepare(named);
    const auto sequences = RandomSequences(kConfig, kLens, 11);
    auto one_thread = *encoder->NewSession(kLimits, 1);
    std::vector<TestOutput> alone;
    for (const TestSequence& sequence : sequences)
      alone.push_back(RunBatch(*one_thread, {sequence})[0]);

    auto session = *encoder->NewSession(kLimits, threads());
    const auto batched = RunBatch(*session, sequences);
    for (size_t i = 0; i < sequences.size(); ++i) {
      SCOPED_TRACE(kLens[i]);
      ExpectSameBits(batched[i], alone[i]);
    }
  }
}

TEST_P(InvarianceTest, OrderDoesNotMatter) {
  for (const NamedBackend& named : backends_) {
    SCOPED_TRACE(named.name);
    const auto encoder = Prepare(named);
    const auto sequences = RandomSequences(kConfig, kLens, 12);
    auto session = *encoder->NewSession(kLimits, threads());
    const auto first = RunBatch(*session, sequences);

    std::vector<size_t> order(sequences.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937(3));
    std::vector<TestSequence> shuffled;
    for (size_t i : order) shuffled.push_back(sequences[i]);
    const auto second = RunBatch(*session, shuffled);
    for (size_t i = 0; i < order.size(); ++i) ExpectSameBits(second[i], first[order[i]]);
  }
}

TEST_P(InvarianceTest, EveryLengthEqualsAlone) {
  for (const NamedBackend& named : backends_) {
    SCOPED_TRACE(named.name);
    const auto encoder = Prepare(named);
    auto session = *encoder->NewSession(kLimits, threads());
    const auto neighbour = RandomSequences(kConfig, {23}, 1)[0];
    for (int64_t len = 1; len <= 100; ++len) {
      const auto sequence = RandomSequences(kConfig, {len}, 2)[0];
      ExpectSameBits(RunBatch(*session, {neighbour, sequence})[1],
                     RunBatch(*session, {sequence})[0]);
    }
  }
}

TEST_P(InvarianceTest, SecondRunEqualsFirst) {
  for (const NamedBackend& named : backends_) {
    const auto encoder = Prepare(named);
    auto session = *encoder->NewSession(kLimits, threads());
    const auto sequences = RandomSequences(kConfig, {40, 9}, 5);
    const auto first = RunBatch(*session, sequences);
    RunBatch(*session, RandomSequences(kConfig, {512, 512, 512}, 6));
    const auto second = RunBatch(*session, sequences);
    for (size_t i = 0; i < first.size(); ++i) ExpectSameBits(first[i], second[i]);
  }
}

// Rows of all sequences are ordered by their experts.
TEST_P(InvarianceTest, ExpertsOfOneDoNotDependOnOthers) {
  EncoderConfig config = kSmallConfig;
  config.experts = 6;
  config.experts_per_token = 2;
  config.expert_layers.set(0).set(1);
  for (const NamedBackend& named : backends_) {
    if (named.name.starts_with("cuda")) continue;  // refuses them
    SCOPED_TRACE(named.name);
    const auto encoder = *named.backend->Prepare(config, RandomWeights(config, 7), dtype());
    const auto one_thread = *encoder->NewSession(kLimits, 1);
    const auto session = *encoder->NewSession(kLimits, threads());
    const auto sequences = RandomSequences(config, kLens, 11);
    const auto batched = RunBatch(*session, sequences);
    for (size_t i = 0; i < sequences.size(); ++i) {
      SCOPED_TRACE(kLens[i]);
      ExpectSameBits(RunBatch(*session, {sequences[i]})[0], batched[i]);
      ExpectSameBits(RunBatch(*one_thread, {sequences[i]})[0], batched[i]);
    }
  }
}

// Of more keys than a block of the attention kernels has, and with a window that leaves some out.
TEST_P(InvarianceTest, OneTokenOfALongSequenceIsPooledAsAmongAll) {
  for (const int64_t window : {0, 300}) {
    EncoderConfig config = kSmallConfig;
    config.max_positions = 600;
    config.window = window;
    if (window > 0) config.local_layers.set(1);
    for (const NamedBackend& named : backends_) {
      if (IsEmulated(named)) continue;  // takes minutes, and computes all rows in any case
      SCOPED_TRACE(named.name + " with window " + std::to_string(window));
      const auto encoder = *named.backend->Prepare(config, RandomWeights(config, 7), dtype());
      ExpectOneTokenPooledAsIfAllWereWanted(*encoder->NewSession(kLimits, threads()).value(),
                                            RandomSequences(config, {600, 3, 513}, 11));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, InvarianceTest,
                         testing::Combine(testing::Values(1, 2, 3), testing::ValuesIn(kDTypes)),
                         [](const auto& parameter) {
                           return std::string(DTypeName(std::get<1>(parameter.param))) + "_" +
                                  std::to_string(std::get<0>(parameter.param));
                         });

}  // namespace
}  // namespace attendant
