// SPDX-License-Identifier: Apache-2.0
// Attention weights and hidden states of inner layers: transformers' numbers, whatever the batch,
// and nothing else changes because somebody looks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/backends.h"
#include "tests/support/checkpoint.h"
#include "tests/support/golden.h"

namespace attendant {
namespace {

constexpr SessionLimits kLimits{.max_batch_tokens = 1024, .max_batch_sequences = 64};
constexpr float kUntouched = -7;

// What is asked for, and room for it with a guard behind.
struct Wanted {
  std::vector<int32_t> attention_layers, attention_heads, hidden_layers;
  std::vector<float> attention_weights = {}, hidden_states = {};
  size_t weights = 0, states = 0;  // without the guard
  int64_t attention_queries = 0;   // 0: all

  LayerOutputs Prepare(int64_t len, int64_t hidden) {
    const int64_t rows = attention_queries > 0 ? std::min(attention_queries, len) : len;
    weights = attention_layers.size() * attention_heads.size() * static_cast<size_t>(rows * len);
    states = hidden_layers.size() * static_cast<size_t>(len * hidden);
    attention_weights.assign(weights + 8, kUntouched);
    hidden_states.assign(states + 8, kUntouched);
    return {.attention_layers = attention_layers,
            .attention_heads = attention_heads,
            .attention_weights = attention_weights.data(),
            .hidden_layers = hidden_layers,
            .hidden_states = hidden_states.data(),
            .attention_queries = attention_queries};
  }
  void TakeResults() {
    const auto untouched = [](float value) { return value == kUntouched; };
    EXPECT_TRUE(std::all_of(attention_weights.end() - 8, attention_weights.end(), untouched));
    EXPECT_TRUE(std::all_of(hidden_states.end() - 8, hidden_states.end(), untouched));
    attention_weights.resize(weights);
    hidden_states.resize(states);
  }
};

std::vector<int32_t> CountTo(int64_t count) {
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Wanted Everything(const EncoderConfig& config) {
  return {.attention_layers = CountTo(config.layers),
          .attention_heads = CountTo(config.heads),
          .hidden_layers = CountTo(config.layers + 1)};
}

// Runs one batch; fills `wanted`, one for each sequence, and returns the last hidden states.
std::vector<float> RunLayers(Session& session, const EncoderConfig& config,
                             const std::vector<TestSequence>& sequences,
                             std::vector<Wanted>& wanted) {
  PackedBatch batch;
  std::vector<LayerOutputs> layers;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const TestSequence& sequence = sequences[i];
    batch.Append(sequence.token_ids, sequence.positions, sequence.segment_ids);
    layers.push_back(wanted[i].Prepare(batch.len(static_cast<int64_t>(i)), config.hidden));
  }
  const std::vector<SequenceOutputs> spec(sequences.size(), {.last_hidden_state = true});
  Outputs outputs;
  const absl::Status status = session.Run(batch, {.sequences = spec, .layers = layers}, outputs);
  EXPECT_TRUE(status.ok()) << status;
  for (Wanted& one : wanted) one.TakeResults();
  const auto& states = outputs.last_hidden_state;
  return {states.data(), states.data() + states.size()};
}

void ExpectRowsSumToOne(const std::vector<float>& weights, int64_t len) {
  for (auto row = weights.begin(); row != weights.end(); row += len) {
    EXPECT_NEAR(std::accumulate(row, row + len, 0.0), 1.0, 1e-5);
    EXPECT_GE(*std::min_element(row, row + len), 0);
  }
}

void ExpectGolden(const NamedBackend& named, const std::string& directory, const std::string& model,
                  DType dtype, float weight_tolerance, float state_tolerance) {
  if (!named.backend->Supports(dtype).ok()) return;
  const auto encoder = PrepareCheckpoint(*named.backend, directory, dtype);
  if (encoder == nullptr) return;
  auto session = *encoder->NewSession(kLimits, 2);
  const auto cases = ReadGoldenCases(model);
  ASSERT_TRUE(cases.ok()) << cases.status();
  int compared = 0;
  float weights_off = 0, states_off = 0;
  for (const GoldenCase& golden : *cases) {
    if (golden.attention_weights.empty()) continue;
    SCOPED_TRACE(golden.name);
    std::vector<Wanted> wanted = {Everything(encoder->config())};
    RunLayers(*session, encoder->config(),
              {{golden.token_ids, golden.positions, golden.segment_ids}}, wanted);
    ExpectRowsSumToOne(wanted[0].attention_weights, static_cast<int64_t>(golden.token_ids.size()));
    weights_off = std::max(
        weights_off, LargestDifference(wanted[0].attention_weights, golden.attention_weights));
    states_off =
        std::max(states_off, LargestDifference(wanted[0].hidden_states, golden.hidden_states));
    ++compared;
  }
  EXPECT_GE(compared, 2);
  EXPECT_LE(weights_off, weight_tolerance);
  EXPECT_LE(states_off, state_tolerance);
  std::printf("%s %s %s: weights %.2g, states %.2g off\n", named.name.c_str(), model.c_str(),
              std::string(DTypeName(dtype)).c_str(), static_cast<double>(weights_off),
              static_cast<double>(states_off));
}

TEST(LayerOutputsTest, EqualTransformers) {
  const auto minilm = RealModelDirectory();
  ASSERT_TRUE(minilm.ok()) << minilm.status();
  for (const NamedBackend& named : AvailableBackends()) {
    SCOPED_TRACE(named.name);
    for (const char* model : kTinyModels) {
      ExpectGolden(named, GoldenDirectory(model), model, DType::kF32, 1e-5f, 2e-5f);
    }
    ExpectGolden(named, *minilm, "all-MiniLM-L6-v2", DType::kF32, 1e-5f, 2e-5f);
    // Weights of a trained model; the tiny ones' logits are far larger.
    ExpectGolden(named, *minilm, "all-MiniLM-L6-v2", DType::kBf16, 1e-2f, 0.1f);
    ExpectGolden(named, *minilm, "all-MiniLM-L6-v2", DType::kInt8, 0.1f, 1.0f);
  }
}

// Wide enough for every tile of the kernels, with heads and tasks that do not come out even.
constexpr EncoderConfig kConfig{.layers = 3,
                                .heads = 5,
                                .hidden = 60,
                                .ffn = 72,
                                .vocab = 61,
                                .max_positions = 512,
                                .segment_types = 2,
                                .layer_norm_epsilon = 1e-12f};

// GPUs read rows 16 bytes at a time, of fp8 too.
EncoderConfig ConfigFor(const NamedBackend& named) {
  EncoderConfig config = kConfig;
  if (named.backend->name() == "cuda") {
    config.hidden = 5 * 32;
    config.ffn = 80;
  }
  return config;
}

// More query rows than one task takes, and key counts around whole vectors.
const std::vector<int64_t> kLens = {1, 2, 15, 16, 17, 129, 260};

// Everything of every sequence, in f32.
std::vector<Wanted> RunEverything(const Backend& backend, const EncoderConfig& config,
                                  const std::vector<TestSequence>& sequences) {
  auto encoder = *backend.Prepare(config, RandomWeights(config, 5), DType::kF32);
  auto session = *encoder->NewSession(kLimits, 2);
  std::vector<Wanted> results(sequences.size(), Everything(config));
  RunLayers(*session, config, sequences, results);
  return results;
}

TEST(LayerOutputsTest, EqualTheReferenceAtEveryLength) {
  const auto backends = AvailableBackends();
  ASSERT_GE(backends.size(), 2u);
  const auto sequences = RandomSequences(kConfig, kLens, 3);
  for (const NamedBackend& named : backends) {
    SCOPED_TRACE(named.name);
    const EncoderConfig config = ConfigFor(named);
    const auto expected = RunEverything(*backends.front().backend, config, sequences);
    const auto computed = RunEverything(*named.backend, config, sequences);
    for (size_t i = 0; i < sequences.size(); ++i) {
      SCOPED_TRACE(kLens[i]);
      EXPECT_LE(LargestDifference(computed[i].attention_weights, expected[i].attention_weights),
                1e-5f);
      EXPECT_LE(LargestDifference(computed[i].hidden_states, expected[i].hidden_states), 2e-5f);
    }
  }
}

// The last layer's rows of the first tokens, of all heads.
Wanted FirstQueries(const EncoderConfig& config, int64_t queries) {
  return {.attention_layers = {static_cast<int32_t>(config.layers - 1)},
          .attention_heads = CountTo(config.heads),
          .hidden_layers = {},
          .attention_queries = queries};
}

TEST(LayerOutputsTest, TheFirstQueriesAreThoseOfAll) {
  const auto sequences = RandomSequences(kConfig, kLens, 3);
  for (const NamedBackend& named : AvailableBackends()) {
    SCOPED_TRACE(named.name);
    const EncoderConfig config = ConfigFor(named);
    auto encoder = *named.backend->Prepare(config, RandomWeights(config, 5), DType::kF32);
    auto session = *encoder->NewSession(kLimits, 2);
    for (const int64_t queries : {1, 3, 200}) {
      std::vector<Wanted> all(sequences.size(), FirstQueries(config, 0));
      std::vector<Wanted> some(sequences.size(), FirstQueries(config, queries));
      RunLayers(*session, config, sequences, all);
      RunLayers(*session, config, sequences, some);
      for (size_t i = 0; i < sequences.size(); ++i) {
        SCOPED_TRACE(kLens[i]);
        const int64_t len = kLens[i], values = std::min(queries, len) * len;
        ASSERT_EQ(static_cast<int64_t>(some[i].attention_weights.size()), config.heads * values);
        for (int64_t head = 0; head < config.heads; ++head) {
          const float* wanted = all[i].attention_weights.data() + head * len * len;
          const float* found = some[i].attention_weights.data() + head * values;
          EXPECT_LE(LargestDifference({found, found + values}, {wanted, wanted + values}), 1e-6f);
        }
      }
    }
  }
}

class LayerOutputsDTypeTest : public testing::TestWithParam<DType> {
 protected:
  // For every back end that has the format, a prepared encoder.
  template <typename Body>
  void ForEachEncoder(Body body) {
    int tried = 0;
    for (const NamedBackend& named : AvailableBackends()) {
      if (named.name == "reference" || !named.backend->Supports(GetParam()).ok()) continue;
      SCOPED_TRACE(named.name);
      const EncoderConfig config = ConfigFor(named);
      auto encoder = *named.backend->Prepare(config, RandomWeights(config, 5), GetParam());
      body(*encoder);
      ++tried;
    }
    if (tried == 0) GTEST_SKIP() << "no fast " << DTypeName(GetParam()) << " on this machine";
  }
};

TEST_P(LayerOutputsDTypeTest, LookingChangesNothing) {
  ForEachEncoder([](const PreparedEncoder& encoder) {
    const auto sequences = RandomSequences(encoder.config(), kLens, 3);
    auto session = *encoder.NewSession(kLimits, 2);
    std::vector<Wanted> nothing(sequences.size());
    std::vector<Wanted> everything(sequences.size(), Everything(encoder.config()));
    const auto blind = RunLayers(*session, encoder.config(), sequences, nothing);
    EXPECT_EQ(RunLayers(*session, encoder.config(), sequences, everything), blind);
    PackedBatch batch;
    for (const TestSequence& s : sequences) batch.Append(s.token_ids, s.positions, s.segment_ids);
    const std::vector<SequenceOutputs> spec(sequences.size(), {.last_hidden_state = true});
    Outputs outputs;
    ASSERT_TRUE(session->Run(batch, {.sequences = spec}, outputs).ok());
    EXPECT_TRUE(std::equal(blind.begin(), blind.end(), outputs.last_hidden_state.data()));
    // The last of the hidden states is the last hidden state.
    const auto values = static_cast<ptrdiff_t>(kLens.back() * encoder.config().hidden);
    EXPECT_TRUE(std::equal(blind.end() - values, blind.end(),
                           everything.back().hidden_states.end() - values));
  });
}

TEST_P(LayerOutputsDTypeTest, BatchedEqualsAlone) {
  ForEachEncoder([](const PreparedEncoder& encoder) {
    const auto sequences = RandomSequences(encoder.config(), kLens, 3);
    auto session = *encoder.NewSession(kLimits, 3);
    auto one_thread = *encoder.NewSession(kLimits, 1);
    // Every other one asks.
    std::vector<Wanted> batched(sequences.size());
    for (size_t i = 0; i < batched.size(); i += 2) batched[i] = Everything(encoder.config());
    // One thread computes them in several sections, and begins with the longest.
    const std::vector<TestSequence> reversed(sequences.rbegin(), sequences.rend());
    std::vector<Wanted> in_sections(batched.rbegin(), batched.rend());
    RunLayers(*session, encoder.config(), sequences, batched);
    RunLayers(*one_thread, encoder.config(), reversed, in_sections);
    for (size_t i = 0; i < sequences.size(); i += 2) {
      EXPECT_EQ(batched[i].attention_weights,
                in_sections[batched.size() - 1 - i].attention_weights);
      EXPECT_EQ(batched[i].hidden_states, in_sections[batched.size() - 1 - i].hidden_states);
      SCOPED_TRACE(kLens[i]);
      std::vector<Wanted> alone = {Everything(encoder.config())};
      RunLayers(*one_thread, encoder.config(), {sequences[i]}, alone);
      EXPECT_EQ(batched[i].attention_weights, alone[0].attention_weights);
      EXPECT_EQ(batched[i].hidden_states, alone[0].hidden_states);
    }
  });
}

TEST_P(LayerOutputsDTypeTest, TheFirstQueryHasTheSameBitsInEveryBatch) {
  ForEachEncoder([](const PreparedEncoder& encoder) {
    const auto sequences = RandomSequences(encoder.config(), kLens, 3);
    auto session = *encoder.NewSession(kLimits, 3);
    auto one_thread = *encoder.NewSession(kLimits, 1);
    std::vector<Wanted> batched(sequences.size(), FirstQueries(encoder.config(), 1));
    RunLayers(*session, encoder.config(), sequences, batched);
    for (size_t i = 0; i < sequences.size(); ++i) {
      SCOPED_TRACE(kLens[i]);
      std::vector<Wanted> alone = {FirstQueries(encoder.config(), 1)};
      RunLayers(*one_thread, encoder.config(), {sequences[i]}, alone);
      EXPECT_EQ(batched[i].attention_weights, alone[0].attention_weights);
      ExpectRowsSumToOne(alone[0].attention_weights, kLens[i]);
    }
  });
}

TEST_P(LayerOutputsDTypeTest, ChosenOnesComeInTheirOrder) {
  ForEachEncoder([](const PreparedEncoder& encoder) {
    constexpr size_t kLen = 17;
    const auto sequences = RandomSequences(encoder.config(), {kLen, kLen}, 3);
    auto session = *encoder.NewSession(kLimits, 2);
    std::vector<Wanted> wanted = {
        Everything(encoder.config()),
        {.attention_layers = {2, 0}, .attention_heads = {4, 1, 2}, .hidden_layers = {3, 1}}};
    RunLayers(*session, encoder.config(), {sequences[0], sequences[0]}, wanted);
    auto chosen = wanted[1].attention_weights.begin();
    for (const int layer : {2, 0}) {
      for (const int head : {4, 1, 2}) {
        const auto first =
            wanted[0].attention_weights.begin() +
            (layer * encoder.config().heads + head) * static_cast<int64_t>(kLen * kLen);
        EXPECT_TRUE(std::equal(first, first + kLen * kLen, chosen)) << layer << ", " << head;
        chosen += kLen * kLen;
      }
    }
    auto states = wanted[1].hidden_states.begin();
    const auto values = static_cast<int64_t>(kLen) * encoder.config().hidden;
    for (const int layer : {3, 1}) {
      EXPECT_TRUE(
          std::equal(states, states + values, wanted[0].hidden_states.begin() + layer * values));
      states += values;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Formats, LayerOutputsDTypeTest, testing::ValuesIn(kDTypes),
                         [](const auto& parameter) {
                           return std::string(DTypeName(parameter.param));
                         });

TEST(LayerOutputsTest, OneEntryForEachSequenceOrNone) {
  for (const NamedBackend& named : AvailableBackends()) {
    const EncoderConfig config = ConfigFor(named);
    auto encoder = *named.backend->Prepare(config, RandomWeights(config, 5), DType::kF32);
    auto session = *encoder->NewSession(kLimits, 1);
    const std::vector<int32_t> zeros(3);
    PackedBatch batch;
    batch.Append(zeros, zeros, zeros);
    const std::vector<SequenceOutputs> spec(1);
    const std::vector<LayerOutputs> layers(2);
    Outputs outputs;
    const absl::Status status = session->Run(batch, {.sequences = spec, .layers = layers}, outputs);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "layer outputs are given for 2 sequences, the batch has 1");
  }
}

}  // namespace
}  // namespace attendant
