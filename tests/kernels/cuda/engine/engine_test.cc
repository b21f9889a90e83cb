// SPDX-License-Identifier: Apache-2.0
// The engine through its C interface: right answers in every format, the same bits for every batch,
// by graph and by launches, and what callers ask for of the inside.
#include <algorithm>
#include <cmath>

#include "kernels/cuda/engine/profile_sampler.h"
#include "tests/kernels/cuda/engine/engine_fixture.h"

namespace attendant::cuda_test {
namespace {

using cuda_emulation::Schedule;

// Of states whose size is about 1.
double Tolerance(int32_t dtype) {
  const double tolerances[] = {2e-5, 6e-2, 8e-3, 0.4};
  return tolerances[dtype];
}

std::vector<float> RowsOf(const std::vector<float>& states, const PackedSequences& batch,
                          int64_t index, int64_t hidden) {
  return {states.begin() + batch.start(index) * hidden,
          states.begin() + batch.start(index + 1) * hidden};
}

class FormatTest : public EngineTest, public testing::WithParamInterface<int32_t> {};

TEST_P(FormatTest, MatchesPlainLoops) {
  for (const int32_t activation :
       {ATTENDANT_CUDA_GELU_ERF, ATTENDANT_CUDA_GELU_TANH, ATTENDANT_CUDA_RELU}) {
    AttendantCudaConfig config = SmallConfig();
    config.activation = activation;
    const RandomEncoder encoder(config, 1);
    Make(encoder, GetParam(), 256);
    const PackedSequences batch = RandomBatch(config, {1, 70, 5, 33}, 2);
    const RunResults results = Run(config, batch);
    const PlainResults plain = RunPlain(encoder, batch);
    EXPECT_LT(LargestDifference(results.last_hidden_state.data(), plain.states.back().data(),
                                batch.tokens() * config.hidden),
              Tolerance(GetParam()))
        << activation;
    for (int64_t i = 0; i < batch.batch(); ++i) {
      const std::vector<float> mean =
          PlainMean(plain.states.back(), batch.start(i), batch.start(i + 1), config.hidden);
      EXPECT_LT(
          CosineDistance(results.pooled.data() + i * config.hidden, mean.data(), config.hidden),
          Tolerance(GetParam()) / 50);
    }
    Release();
  }
}

// Graphs of all sizes, batches beyond graphs, and the largest.
TEST_P(FormatTest, BatchedEqualsAlone) {
  const AttendantCudaConfig config = SmallConfig();
  const RandomEncoder encoder(config, 3);
  Make(encoder, GetParam(), 1300, 64);
  const std::vector<int64_t> lens = {1, 2, 15, 16, 17, 63, 64, 65, 129, 200, 256, 256, 150};
  const PackedSequences batch = RandomBatch(config, lens, 4);
  ASSERT_GT(batch.tokens(), 1024);
  const RunResults together = Run(config, batch);
  for (int64_t i = 0; i < batch.batch(); ++i) {
    const PackedSequences one =
        RandomBatch(config, {lens[static_cast<size_t>(i)]}, 4 + static_cast<uint32_t>(i));
    const RunResults alone = Run(config, one);
    EXPECT_EQ(RowsOf(together.last_hidden_state, batch, i, config.hidden), alone.last_hidden_state)
        << lens[static_cast<size_t>(i)];
    EXPECT_TRUE(std::equal(alone.pooled.begin(), alone.pooled.end(),
                           together.pooled.begin() + i * config.hidden));
  }
  Release();
}

std::string FormatOf(const testing::TestParamInfo<int32_t>& dtype) {
  const std::string names[] = {"f32", "bf16", "f16", "fp8"};
  return names[dtype.param];
}
INSTANTIATE_TEST_SUITE_P(Formats, FormatTest,
                         testing::Values(ATTENDANT_CUDA_F32, ATTENDANT_CUDA_BF16,
                                         ATTENDANT_CUDA_F16, ATTENDANT_CUDA_FP8),
                         FormatOf);

// In every order of streams: hidden states and weights of the right layers at the right places.
class InsideTest : public EngineTest, public testing::WithParamInterface<uint32_t> {};

void ExpectInside(const RunResults& results, const PlainResults& plain,
                  const PackedSequences& batch, const Inside& inside,
                  const AttendantCudaConfig& config) {
  size_t heads_begin = 0;  // of the sequence, in a layer's plain weights
  for (int64_t s = 0; s < batch.batch(); ++s) {
    const int64_t len = batch.len(s);
    const float* states = results.hidden_states[static_cast<size_t>(s)].data();
    for (const int32_t layer : inside.hidden_layers) {
      const std::vector<float> expected =
          RowsOf(plain.states[static_cast<size_t>(layer)], batch, s, config.hidden);
      EXPECT_LT(LargestDifference(states, expected.data(), len * config.hidden), 2e-5);
      states += len * config.hidden;
    }
    const float* weights = results.attention_weights[static_cast<size_t>(s)].data();
    for (const int32_t layer : inside.attention_layers) {
      for (const int32_t head : inside.attention_heads) {
        const float* expected = plain.attention_weights[static_cast<size_t>(layer)].data() +
                                heads_begin + static_cast<size_t>(head * len * len);
        EXPECT_LT(LargestDifference(weights, expected, len * len), 1e-5);
        weights += len * len;
      }
    }
    heads_begin += static_cast<size_t>(config.heads * len * len);
  }
}

// 1,100 rows of 1,100 weights are more than a piece on their way to the host holds.
TEST_F(EngineTest, WeightsOfALongSequenceComeInPieces) {
  AttendantCudaConfig config = SmallConfig();
  config.layers = 1;
  config.max_positions = 1100;
  const RandomEncoder encoder(config, 5);
  Make(encoder, ATTENDANT_CUDA_F32, 1103);
  const PackedSequences batch = RandomBatch(config, {3, 1100}, 6);
  const Inside inside{.attention_layers = {0}, .attention_heads = {1, 0}, .hidden_layers = {1}};
  ExpectInside(Run(config, batch, inside), RunPlain(encoder, batch), batch, inside, config);
  Release();
}

TEST_P(InsideTest, LayersAndHeadsAsAsked) {
  cuda_emulation::Configure(
      {.schedule = GetParam() == 0 ? Schedule::kLatest : Schedule::kShuffled, .seed = GetParam()});
  const AttendantCudaConfig config = SmallConfig();
  const RandomEncoder encoder(config, 5);
  Make(encoder, ATTENDANT_CUDA_F32, 128);
  const PackedSequences batch = RandomBatch(config, {3, 50, 1, 31}, 6);
  const Inside inside{
      .attention_layers = {1, 0, 1}, .attention_heads = {1, 0}, .hidden_layers = {2, 0, 1}};
  const RunResults results = Run(config, batch, inside);
  ExpectInside(results, RunPlain(encoder, batch), batch, inside, config);

  const RunResults plain_run = Run(config, batch);
  EXPECT_EQ(plain_run.last_hidden_state, results.last_hidden_state)
      << "looking inside changes a bit, or a graph does";
  Release();
}

TEST_P(InsideTest, TheFirstQueriesAlone) {
  cuda_emulation::Configure(
      {.schedule = GetParam() == 0 ? Schedule::kLatest : Schedule::kShuffled, .seed = GetParam()});
  const AttendantCudaConfig config = SmallConfig();
  const RandomEncoder encoder(config, 5);
  Make(encoder, ATTENDANT_CUDA_F32, 128);
  const PackedSequences batch = RandomBatch(config, {3, 50, 1, 31}, 6);
  Inside inside{.attention_layers = {1}, .attention_heads = {0, 1}, .hidden_layers = {}};
  const RunResults all = Run(config, batch, inside);
  inside.attention_queries = 2;
  const RunResults some = Run(config, batch, inside);
  for (int64_t i = 0; i < batch.batch(); ++i) {
    const auto& full = all.attention_weights[static_cast<size_t>(i)];
    const auto& rows = some.attention_weights[static_cast<size_t>(i)];
    const int64_t len = batch.len(i), values = std::min<int64_t>(len, 2) * len;
    ASSERT_EQ(static_cast<int64_t>(rows.size()), 2 * values);
    for (int64_t head = 0; head < 2; ++head) {
      const auto first = rows.begin() + head * values;
      EXPECT_TRUE(std::equal(first, first + values, full.begin() + head * len * len)) << head;
    }
  }
  Release();
}

// More than fits the pipe's slots at once: they are used over and over.
TEST_P(InsideTest, MoreThanTheSlotsHold) {
  cuda_emulation::Configure(
      {.schedule = GetParam() == 0 ? Schedule::kLatest : Schedule::kShuffled, .seed = GetParam()});
  AttendantCudaConfig config = SmallConfig();
  config.max_positions = 1024;
  const RandomEncoder encoder(config, 7);
  Make(encoder, ATTENDANT_CUDA_F32, 700);
  const PackedSequences batch = RandomBatch(config, {600, 100}, 8);
  const Inside inside{
      .attention_layers = {0, 1, 0, 1}, .attention_heads = {0, 1, 1}, .hidden_layers = {0, 1, 2}};
  const RunResults results = Run(config, batch, inside);
  ExpectInside(results, RunPlain(encoder, batch), batch, inside, config);
  Release();
}

INSTANTIATE_TEST_SUITE_P(Schedules, InsideTest, testing::Values(0, 1, 2));

class SessionTest : public EngineTest {};

TEST_F(SessionTest, RunsAllocateNothing) {
  const AttendantCudaConfig config = SmallConfig();
  const RandomEncoder encoder(config, 9);
  Make(encoder, ATTENDANT_CUDA_BF16, 1200);
  const cuda_emulation::Alive alive = cuda_emulation::CountAlive();
  const int64_t allocations = cuda_emulation::CountAllocations();
  for (const int64_t len : {1, 100, 256}) {
    Run(config, RandomBatch(config, {len, len, 7}, 1));
    Run(config, RandomBatch(config, {len, 3}, 2), {{0, 1}, {0}, {1, 2}});
  }
  Run(config, RandomBatch(config, {256, 256, 256, 256, 100}, 3));
  EXPECT_EQ(cuda_emulation::CountAllocations(), allocations);
  EXPECT_EQ(cuda_emulation::CountAlive(), alive);
  EXPECT_EQ(alive.executable_graphs, 22);
  EXPECT_EQ(alive.graphs, 0) << "what was recorded is not needed any more";
  EXPECT_LE(interface_.model_bytes(model_.get()) + interface_.session_bytes(session_.get()),
            alive.device_bytes);
  EXPECT_GT(interface_.session_bytes(session_.get()), 0);
  Release();
}

// Short sequences beyond what a bucket's graph was recorded for, and poolings of all kinds.
TEST_F(SessionTest, ManyShortSequences) {
  const AttendantCudaConfig config = SmallConfig();
  const RandomEncoder encoder(config, 10);
  Make(encoder, ATTENDANT_CUDA_F32, 200, 200);
  for (const int64_t count : {9, 10, 11, 30, 150, 200}) {
    const PackedSequences batch =
        RandomBatch(config, std::vector<int64_t>(static_cast<size_t>(count), 1), 11);
    const RunResults results = Run(config, batch);
    const PlainResults plain = RunPlain(encoder, batch);
    EXPECT_LT(LargestDifference(results.last_hidden_state.data(), plain.states.back().data(),
                                batch.tokens() * config.hidden),
              2e-5)
        << count;
  }
  Release();
}

TEST_F(SessionTest, PoolsAsAsked) {
  const AttendantCudaConfig config = SmallConfig();
  const RandomEncoder encoder(config, 12);
  Make(encoder, ATTENDANT_CUDA_F32, 64);
  const PackedSequences batch = RandomBatch(config, {5, 6, 7, 8}, 13);
  const std::vector<AttendantCudaSequenceOutputs> wanted = {
      {.last_hidden_state = 0, .pooling = ATTENDANT_CUDA_POOL_CLS, .normalize = 0, .dims = 0},
      {.last_hidden_state = 0, .pooling = ATTENDANT_CUDA_POOL_NONE, .normalize = 0, .dims = 0},
      {.last_hidden_state = 1, .pooling = ATTENDANT_CUDA_POOL_LAST, .normalize = 0, .dims = 10},
      {.last_hidden_state = 0, .pooling = ATTENDANT_CUDA_POOL_MAX, .normalize = 1, .dims = 1}};
  const AttendantCudaOutputSpec spec{.sequences = wanted.data(), .layers = nullptr};
  const AttendantCudaBatch view = batch.view();
  AttendantCudaOutputs outputs{};
  ASSERT_EQ(interface_.run(session_.get(), &view, &spec, &outputs).code, ATTENDANT_CUDA_OK);
  const std::vector<float> states = RunPlain(encoder, batch).states.back();
  const int64_t hidden = config.hidden;
  EXPECT_LT(LargestDifference(outputs.pooled, states.data(), hidden), 2e-5);
  EXPECT_LT(LargestDifference(outputs.pooled + 2 * hidden,
                              states.data() + (batch.start(3) - 1) * hidden, 10),
            2e-5);
  EXPECT_EQ(std::abs(outputs.pooled[3 * hidden]), 1.0f);
  EXPECT_LT(LargestDifference(outputs.last_hidden_state + batch.start(2) * hidden,
                              states.data() + batch.start(2) * hidden, 7 * hidden),
            2e-5);

  const std::vector<AttendantCudaSequenceOutputs> nothing(4);
  const AttendantCudaOutputSpec empty{.sequences = nothing.data(), .layers = nullptr};
  ASSERT_EQ(interface_.run(session_.get(), &view, &empty, &outputs).code, ATTENDANT_CUDA_OK);
  EXPECT_EQ(outputs.last_hidden_state, nullptr) << "nobody asked";
  Release();
}

TEST_F(SessionTest, EveryManyRunsTheGroupsAreTimed) {
  const AttendantCudaConfig config = SmallConfig();
  const RandomEncoder encoder(config, 14);
  Make(encoder, ATTENDANT_CUDA_FP8, 32);
  const PackedSequences batch = RandomBatch(config, {20}, 15);
  const RunResults first = Run(config, batch);
  AttendantCudaProfile profile{};
  double busy = 0;
  for (int run = 2; run <= 130; ++run) {
    EXPECT_EQ(Run(config, batch, run % 2 == 0 ? Inside{} : Inside{{0}, {0}, {1}}).pooled,
              first.pooled);
    interface_.profile(session_.get(), &profile);
    EXPECT_EQ(profile.sampled_runs, run / cuda::ProfileSampler::kRuns);
    EXPECT_GT(profile.busy_seconds, busy);
    busy = profile.busy_seconds;
  }
  double groups = 0;
  for (const double seconds : profile.group_seconds) {
    EXPECT_GT(seconds, 0);
    groups += seconds;
  }
  EXPECT_LE(groups, busy);
  Release();
}

TEST_F(SessionTest, SessionsOfOneModelShareWhatTheyFound) {
  const AttendantCudaConfig config = SmallConfig();
  const RandomEncoder encoder(config, 16);
  Make(encoder, ATTENDANT_CUDA_BF16, 512);
  const int64_t calls_before = cuda_emulation::CountCalls();
  SessionPointer second(nullptr, {&interface_});
  ASSERT_EQ(MakeSession(interface_, model_.get(), 512, 16, second).code, ATTENDANT_CUDA_OK);
  const int64_t calls_of_second = cuda_emulation::CountCalls() - calls_before;
  EXPECT_LT(calls_of_second, calls_before / 2) << "tuned once more";

  // One of other limits gives the same bits.
  SessionPointer larger(nullptr, {&interface_});
  ASSERT_EQ(MakeSession(interface_, model_.get(), 2048, 16, larger).code, ATTENDANT_CUDA_OK);
  const PackedSequences batch = RandomBatch(config, {100, 7}, 17);
  EXPECT_EQ(RunAll(interface_, larger.get(), config, batch).last_hidden_state,
            Run(config, batch).last_hidden_state);
  second.reset();
  larger.reset();
  Release();
}

TEST_F(SessionTest, LayersOfTheSameTensorsTakeMemoryOnce) {
  const auto bytes = [&](int64_t layers, bool shared) {
    AttendantCudaConfig config = SmallConfig();
    config.layers = layers;
    const RandomEncoder encoder(config, 1, {.shared_layers = shared});
    ModelPointer model(nullptr, {&interface_});
    EXPECT_EQ(MakeModel(interface_, 0, encoder, ATTENDANT_CUDA_BF16, model).code,
              ATTENDANT_CUDA_OK);
    return interface_.model_bytes(model.get());
  };
  EXPECT_EQ(bytes(5, true), bytes(1, false));
  EXPECT_GT(bytes(2, false), bytes(1, false));
}

TEST_F(SessionTest, SeveralDevicesAreReplicas) {
  cuda_emulation::Configure({.devices = 3, .schedule = Schedule::kShuffled});
  int32_t count = 0;
  ASSERT_EQ(interface_.count_devices(&count).code, ATTENDANT_CUDA_OK);
  ASSERT_EQ(count, 3);
  const AttendantCudaConfig config = SmallConfig();
  const RandomEncoder encoder(config, 18);
  const PackedSequences batch = RandomBatch(config, {10, 20}, 19);
  std::vector<ModelPointer> models;
  std::vector<SessionPointer> sessions;
  for (int32_t device = 0; device < count; ++device) {
    models.emplace_back(nullptr, DestroyModel{&interface_});
    sessions.emplace_back(nullptr, DestroySession{&interface_});
    ASSERT_EQ(MakeModel(interface_, device, encoder, ATTENDANT_CUDA_F16, models.back()).code,
              ATTENDANT_CUDA_OK);
    ASSERT_EQ(MakeSession(interface_, models.back().get(), 64, 4, sessions.back()).code,
              ATTENDANT_CUDA_OK);
    int64_t free_bytes = 0, total_bytes = 0;
    ASSERT_EQ(interface_.device_memory(device, &free_bytes, &total_bytes).code, ATTENDANT_CUDA_OK);
    EXPECT_LE(free_bytes, total_bytes - interface_.model_bytes(models.back().get()));
  }
  const RunResults first = RunAll(interface_, sessions[0].get(), config, batch);
  for (const SessionPointer& session : sessions) {
    EXPECT_EQ(RunAll(interface_, session.get(), config, batch).pooled, first.pooled);
  }
  sessions.clear();
  models.clear();
}

}  // namespace
}  // namespace attendant::cuda_test
