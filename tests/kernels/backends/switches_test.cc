// SPDX-License-Identifier: Apache-2.0
// Every switch of EncoderConfig, alone and with others: a back end computes it as the reference
// does, with the same bits in every batch, or refuses it by its name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/backends/switched_configs.h"
#include "tests/support/backends.h"
#include "tests/support/checkpoint.h"
#include "tests/support/one_token_pooling.h"

namespace attendant {
namespace {

constexpr SessionLimits kLimits{.max_batch_tokens = 700, .max_batch_sequences = 8};
const std::vector<int64_t> kLens = {1, 17, 130, 64, 300};
// The reference and an emulated GPU take their time.
constexpr SessionLimits kSlowLimits{.max_batch_tokens = 96, .max_batch_sequences = 4};
const std::vector<int64_t> kSlowLens = {1, 17, 70};
const auto kUnimplemented = absl::StatusCode::kUnimplemented;

EncoderWeights WeightsOf(const EncoderConfig& config) {
  EncoderWeights weights = RandomWeights(config, 7);
  if (config.positions != Positions::kLearned) weights.position_embedding = {};
  if (!config.first_attention_norm) weights.layers[0].attention_norm = {};
  if (config.biases == Biases::kRequired) return weights;
  weights.embedding_norm.beta = weights.final_norm.beta = {};
  for (EncoderLayerWeights& layer : weights.layers) {
    for (LinearWeights* linear :  // the key keeps its own
         {&layer.query, &layer.value, &layer.attention_output, &layer.ffn_gate, &layer.ffn_up,
          &layer.ffn_down}) {
      linear->bias = {};
    }
    layer.experts_bias = {};
    layer.attention_norm.beta = layer.ffn_norm.beta = {};
    layer.attention_output_norm.beta = layer.ffn_output_norm.beta = {};
  }
  return weights;
}

// Every second one with gaps between its positions, as a mask leaves them.
std::vector<TestSequence> SomeWithGaps(std::vector<TestSequence> sequences) {
  for (size_t i = 1; i < sequences.size(); i += 2) {
    int32_t at = 0;
    for (int32_t& position : sequences[i].positions) position += at++ / 5;
  }
  return sequences;
}

// The last tokens are unattended where the encoder has such ones.
std::vector<TestSequence> SequencesOf(const EncoderConfig& config, const std::vector<int64_t>& lens,
                                      uint32_t seed) {
  std::vector<TestSequence> sequences = SomeWithGaps(RandomSequences(config, lens, seed));
  if (!config.unattended_tokens) return sequences;
  for (TestSequence& sequence : sequences) {
    sequence.keys = std::max<int64_t>(1, static_cast<int64_t>(sequence.token_ids.size()) - 5);
  }
  return sequences;
}

class SwitchesTest : public testing::TestWithParam<Switched> {
 protected:
  static const EncoderConfig& config() { return GetParam().config; }
  static std::unique_ptr<PreparedEncoder> Prepare(const Backend& backend, DType dtype) {
    auto encoder = backend.Prepare(config(), WeightsOf(config()), dtype);
    EXPECT_TRUE(encoder.ok()) << encoder.status();
    return *std::move(encoder);
  }
};

// The root mean square of the difference, beside that of the values.
double RelativeError(const std::vector<float>& actual, const std::vector<float>& expected) {
  double error = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = static_cast<double>(expected[i]);
    error += std::pow(static_cast<double>(actual[i]) - value, 2);
    size += value * value;
  }
  return std::sqrt(error / size);
}

// What a refusal of the CUDA back end names; null where it computes the encoder.
const char* LackingOnCuda(const EncoderConfig& config, DType dtype) {
  if (config.score_bias == ScoreBias::kDisentangled) return "score_bias";
  if (config.embedding_width % 8 != 0) return "embedding_width";
  if (config.expert_layers.any()) return "expert_layers";
  return dtype != DType::kF32 && config.head_dim() % 8 != 0 ? "head_dim" : nullptr;
}

TEST_P(SwitchesTest, AreComputedOrRefused) {
  const auto backends = AvailableBackends();
  const auto reference = Prepare(*backends.front().backend, DType::kF32);
  // A token whose scores for two experts are close goes to the other one.
  const double choice_error = config().expert_layers.any() ? 3 : 1;
  for (const NamedBackend& named : backends) {
    const bool emulated = named.name == "cuda/emulated";
    const bool slow = emulated || named.name == "reference";
    const auto& lens = slow ? kSlowLens : kLens;
    const SessionLimits& limits = slow ? kSlowLimits : kLimits;
    const auto sequences = SequencesOf(config(), lens, 11);
    const auto expected = RunBatch(**reference->NewSession(limits, 1), sequences);
    for (const auto& [dtype, tolerance] :
         {std::pair{DType::kF32, 2e-6}, {DType::kBf16, 1e-2}, {DType::kInt8, 3e-2}}) {
      SCOPED_TRACE(named.name + " " + std::string(DTypeName(dtype)));
      if (!named.backend->Supports(dtype).ok()) continue;
      const char* const lacking = LackingOnCuda(config(), dtype);
      if (named.backend->name() == "cuda" && lacking != nullptr) {
        const absl::Status refused =
            named.backend->Prepare(config(), WeightsOf(config()), dtype).status();
        EXPECT_EQ(refused.code(), kUnimplemented);
        EXPECT_THAT(refused.message(), testing::HasSubstr(lacking));
        continue;
      }
      const auto encoder = Prepare(*named.backend, dtype);
      const auto session = *encoder->NewSession(limits, 2), alone = *encoder->NewSession(limits, 1);
      const auto batched = RunBatch(*session, sequences);
      for (size_t i = 0; i < sequences.size(); ++i) {
        SCOPED_TRACE(lens[i]);
        EXPECT_LT(RelativeError(batched[i].last_hidden_state, expected[i].last_hidden_state),
                  choice_error * tolerance);
        EXPECT_EQ(RunBatch(*session, {sequences[i]})[0].last_hidden_state,
                  batched[i].last_hidden_state);
        EXPECT_EQ(RunBatch(*alone, {sequences[i]})[0].last_hidden_state,
                  batched[i].last_hidden_state);
      }
      if (emulated) continue;  // takes minutes, and computes all rows in any case
      ExpectOneTokenPooledAsIfAllWereWanted(*session, sequences);
      ExpectOneTokenPooledAsIfAllWereWanted(*alone, sequences);
    }
  }
}

// All hidden states [layers + 1, len, hidden] of one sequence, and then all attention weights.
std::vector<float> LookInside(const PreparedEncoder& encoder, const TestSequence& sequence) {
  const EncoderConfig& config = encoder.config();
  const auto len = static_cast<int64_t>(sequence.token_ids.size());
  const int32_t all[] = {0, 1, 2, 3};
  const int64_t states = (config.layers + 1) * len * config.hidden;
  std::vector<float> inside(static_cast<size_t>(states + 3 * 4 * len * len));
  const LayerOutputs wanted{std::span(all).first(3), all, inside.data() + states, all,
                            inside.data()};
  const SequenceOutputs outer{.last_hidden_state = true};
  PackedBatch batch;
  batch.Append(sequence.token_ids, sequence.positions, sequence.segment_ids, sequence.keys);
  Outputs outputs;
  const auto session = *encoder.NewSession(kSlowLimits, 2);
  EXPECT_TRUE(session->Run(batch, {{&outer, 1}, {&wanted, 1}}, outputs).ok());
  const int64_t last = config.layers * len * config.hidden;
  EXPECT_TRUE(
      std::equal(inside.begin() + last, inside.begin() + states, outputs.last_hidden_state.data()));
  return inside;
}

TEST_P(SwitchesTest, ShowTheSameInside) {
  const auto backends = AvailableBackends();
  for (const TestSequence& sequence : SequencesOf(config(), {37, 45}, 3)) {
    const auto expected = LookInside(*Prepare(*backends.front().backend, DType::kF32), sequence);
    for (const NamedBackend& named : backends) {
      if (named.name == "reference") continue;
      if (named.name.starts_with("cuda") && LackingOnCuda(config(), DType::kF32) != nullptr) {
        continue;
      }
      SCOPED_TRACE(named.name);
      EXPECT_LT(
          LargestDifference(LookInside(*Prepare(*named.backend, DType::kF32), sequence), expected),
          5e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SwitchesTest, testing::ValuesIn(AllSwitched()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(UnattendedTokensTest, ChangeNothingForTheOthers) {
  EncoderConfig config = AllSwitched().front().config;
  config.unattended_tokens = true;
  std::vector<TestSequence> sequences = RandomSequences(config, {30}, 5);
  sequences.front().keys = 20;
  std::vector<TestSequence> keys = sequences;
  for (auto* values : {&keys[0].token_ids, &keys[0].positions, &keys[0].segment_ids}) {
    values->resize(20);
  }
  for (const NamedBackend& named : AvailableBackends()) {
    SCOPED_TRACE(named.name);
    const auto encoder = *named.backend->Prepare(config, WeightsOf(config), DType::kF32);
    const auto session = *encoder->NewSession(kSlowLimits, 1);
    std::vector<float> states = RunBatch(*session, sequences)[0].last_hidden_state;
    states.resize(static_cast<size_t>(20 * config.hidden));
    EXPECT_EQ(states, RunBatch(*session, keys)[0].last_hidden_state);
  }
}

TEST(EncoderInputTest, OfStatesIsRefusedByBackEnds) {
  EncoderConfig config = AllSwitched().front().config;
  config.norm_place = NormPlace::kPost;
  config.input = EncoderInput::kStates;
  for (const NamedBackend& named : AvailableBackends()) {
    SCOPED_TRACE(named.name);
    const auto refused = named.backend->Prepare(config, RandomWeights(config, 1), DType::kF32);
    EXPECT_EQ(refused.status().code(), kUnimplemented);
    EXPECT_THAT(refused.status().message(), testing::HasSubstr("input"));
  }
}

}  // namespace
}  // namespace attendant
