// SPDX-License-Identifier: Apache-2.0
// Whatever fails, the caller hears of it, nothing leaks, and what can go on goes on.
#include <cstring>
#include <thread>

#include "tests/kernels/cuda/engine/engine_fixture.h"

namespace attendant::cuda_test {
namespace {

using cuda_emulation::Configure;
using cuda_emulation::CountAlive;
using cuda_emulation::CountCalls;
using cuda_emulation::FailCall;
using cuda_emulation::FailWork;

constexpr int64_t kTokens = 48;
// Sanitizers take ten times as long: walks take longer steps.
#ifdef ATTENDANT_SANITIZED
constexpr int64_t kStride = 13;
#else
constexpr int64_t kStride = 1;
#endif

// One layer, so that walks over every call are short.
AttendantCudaConfig TinyConfig() {
  AttendantCudaConfig config = SmallConfig();
  config.layers = 1;
  return config;
}

struct Life {
  AttendantCudaStatus model{}, session{}, run{}, second_run{};
  RunResults first, second;

  bool AllWell() const { return FirstError().code == ATTENDANT_CUDA_OK; }
  const AttendantCudaStatus& FirstError() const {
    for (const AttendantCudaStatus* status : {&model, &session, &run}) {
      if (status->code != ATTENDANT_CUDA_OK) return *status;
    }
    return second_run;
  }
};

// A model, a session, a run, and another one that shows what is left of them.
Life Live(const AttendantCudaInterface& interface, const RandomEncoder& encoder, int32_t dtype,
          const Inside& inside) {
  Life life;
  ModelPointer model(nullptr, {&interface});
  SessionPointer session(nullptr, {&interface});
  life.model = MakeModel(interface, 0, encoder, dtype, model);
  EXPECT_EQ(life.model.code == ATTENDANT_CUDA_OK, model != nullptr);
  if (model == nullptr) return life;
  life.session = MakeSession(interface, model.get(), kTokens, 4, session);
  EXPECT_EQ(life.session.code == ATTENDANT_CUDA_OK, session != nullptr);
  if (session == nullptr) return life;
  const PackedSequences batch = RandomBatch(encoder.config(), {40, 3}, 2);
  life.first = RunAll(interface, session.get(), encoder.config(), batch, inside);
  life.run = life.first.status;
  life.second = RunAll(interface, session.get(), encoder.config(), batch, {});
  life.second_run = life.second.status;
  return life;
}

class WalkTest : public EngineTest {
 protected:
  // Lets every `step`-th call from model to run fail once.
  void Walk(int32_t dtype, cudaError_t error, const Inside& inside, int64_t step,
            const std::function<void(const Life&)>& check) {
    const RandomEncoder encoder(TinyConfig(), 1);
    Configure({});
    const Life well = Live(interface_, encoder, dtype, inside);
    ASSERT_TRUE(well.AllWell()) << well.FirstError().message;
    const int64_t calls = CountCalls();
    int64_t heard = 0;
    for (int64_t number = 0; number < calls; number += step * kStride) {
      Configure({});
      FailCall(number, error);
      const Life life = Live(interface_, encoder, dtype, inside);
      ASSERT_EQ(CountAlive(), cuda_emulation::Alive{}) << "call " << number << " leaks";
      check(life);
      heard += life.FirstError().code != ATTENDANT_CUDA_OK;
      if (life.second_run.code == ATTENDANT_CUDA_OK && life.session.code == 0 &&
          life.model.code == 0) {
        ASSERT_EQ(life.second.last_hidden_state, well.second.last_hidden_state)
            << "call " << number << " spoils the next run";
      }
      if (HasFailure()) FAIL() << "when call " << number << " of " << calls << " fails";
    }
    std::printf("%lld calls, %lld failures heard\n", static_cast<long long>(calls),
                static_cast<long long>(heard));
    EXPECT_GT(heard, calls / (step * kStride) / 2);
  }
};

void ExpectMemoryError(const Life& life) {
  const int32_t code = life.FirstError().code;
  EXPECT_TRUE(code == ATTENDANT_CUDA_OK || code == ATTENDANT_CUDA_RESOURCE_EXHAUSTED ||
              code == ATTENDANT_CUDA_UNAVAILABLE)
      << Describe(life.FirstError());
}

TEST_F(WalkTest, AnyCallMayRunOutOfMemory) {
  Walk(ATTENDANT_CUDA_BF16, cudaErrorMemoryAllocation, {}, 1, ExpectMemoryError);
  // fp8 takes longer, and what only it calls is called many times.
  Walk(ATTENDANT_CUDA_FP8, cudaErrorMemoryAllocation, {{0}, {1}, {0, 1}}, 17, ExpectMemoryError);
}

TEST_F(WalkTest, ARunThatFailedLeavesTheSessionUsable) {
  Walk(ATTENDANT_CUDA_BF16, cudaErrorLaunchOutOfResources, {{0}, {0, 1}, {1}}, 1,
       [](const Life& life) {
         if (life.run.code != ATTENDANT_CUDA_OK) {
           EXPECT_EQ(life.run.code, ATTENDANT_CUDA_INTERNAL);
           EXPECT_NE(std::strlen(life.run.message), 0u);
           EXPECT_EQ(life.second_run.code, ATTENDANT_CUDA_OK) << life.second_run.message;
         }
       });
}

TEST_F(WalkTest, ALostDeviceIsLostForGood) {
  Walk(ATTENDANT_CUDA_F32, cudaErrorECCUncorrectable, {{0}, {0}, {1}}, 1, [](const Life& life) {
    for (const AttendantCudaStatus* status : {&life.model, &life.session, &life.run}) {
      if (status->code == ATTENDANT_CUDA_OK) continue;
      EXPECT_EQ(status->code, ATTENDANT_CUDA_DEVICE_LOST) << Describe(*status);
    }
    if (life.run.code != ATTENDANT_CUDA_OK) {
      EXPECT_EQ(life.second_run.code, ATTENDANT_CUDA_DEVICE_LOST);
    }
  });
}

class FailureTest : public EngineTest {};

// A kernel that goes wrong is noticed when its run waits.
TEST_F(FailureTest, AKernelThatFaultsLosesTheDevice) {
  const RandomEncoder encoder(TinyConfig(), 1);
  const PackedSequences batch = RandomBatch(encoder.config(), {40, 3}, 2);
  for (const Inside& inside : {Inside{}, Inside{{0}, {1}, {0, 1}}}) {
    for (int64_t piece = 0; piece < 8; ++piece) {
      Configure({});
      Make(encoder, ATTENDANT_CUDA_BF16, kTokens);
      // Pieces of work count from the start: creation's have run.
      FailWork(cuda_emulation::CountWork() + piece, cudaErrorIllegalAddress);
      const RunResults results =
          RunAll(interface_, session_.get(), encoder.config(), batch, inside);
      EXPECT_EQ(results.status.code, ATTENDANT_CUDA_DEVICE_LOST) << Describe(results.status);
      EXPECT_EQ(RunAll(interface_, session_.get(), encoder.config(), batch).status.code,
                ATTENDANT_CUDA_DEVICE_LOST);
      Release();
    }
  }
}

TEST_F(FailureTest, OneLostDeviceLeavesTheOthers) {
  Configure({.devices = 2});
  const RandomEncoder encoder(TinyConfig(), 1);
  const PackedSequences batch = RandomBatch(encoder.config(), {5}, 2);
  Make(encoder, ATTENDANT_CUDA_F32, kTokens);
  ModelPointer other_model(nullptr, {&interface_});
  SessionPointer other(nullptr, {&interface_});
  ASSERT_EQ(MakeModel(interface_, 1, encoder, ATTENDANT_CUDA_F32, other_model).code, 0);
  ASSERT_EQ(MakeSession(interface_, other_model.get(), kTokens, 4, other).code, 0);
  FailWork(cuda_emulation::CountWork(), cudaErrorIllegalAddress);
  EXPECT_EQ(RunAll(interface_, session_.get(), encoder.config(), batch).status.code,
            ATTENDANT_CUDA_DEVICE_LOST);
  EXPECT_EQ(RunAll(interface_, other.get(), encoder.config(), batch).status.code,
            ATTENDANT_CUDA_OK);
  other.reset();
  other_model.reset();
  Release();
}

// Every size of memory between nothing and enough.
TEST_F(FailureTest, TooLittleMemorySaysSo) {
  const RandomEncoder encoder(TinyConfig(), 1);
  int64_t refused = 0;
  bool enough = false;
  for (int64_t bytes = 1 << 12; !enough; bytes *= 2) {
    enough = true;
    for (const bool pinned : {false, true}) {
      cuda_emulation::Options options;
      (pinned ? options.pinned_bytes : options.device_bytes) = bytes;
      Configure(options);
      const Life life = Live(interface_, encoder, ATTENDANT_CUDA_BF16, {});
      EXPECT_EQ(CountAlive(), cuda_emulation::Alive{});
      enough &= life.AllWell();
      if (!life.AllWell()) {
        ++refused;
        EXPECT_EQ(life.FirstError().code, ATTENDANT_CUDA_RESOURCE_EXHAUSTED);
        EXPECT_NE(std::strstr(life.FirstError().message, "bytes"), nullptr)
            << life.FirstError().message;
      }
    }
    ASSERT_LT(bytes, int64_t{1} << 30);
  }
  EXPECT_GT(refused, 20);
}

struct Refusal {
  const char* name;
  void (*change)(AttendantCudaConfig&);
  int32_t dtype, capability, code;
};

TEST_F(FailureTest, WhatCannotBeComputedIsRefused) {
  using Config = AttendantCudaConfig;
  const Refusal refusals[] = {
      {"no layers", [](Config& c) { c.layers = 0; }, ATTENDANT_CUDA_F32, 90,
       ATTENDANT_CUDA_INVALID_ARGUMENT},
      {"negative vocab", [](Config& c) { c.vocab = -1; }, ATTENDANT_CUDA_F32, 90,
       ATTENDANT_CUDA_INVALID_ARGUMENT},
      {"heads", [](Config& c) { c.heads = 3; }, ATTENDANT_CUDA_F32, 90,
       ATTENDANT_CUDA_INVALID_ARGUMENT},
      {"epsilon", [](Config& c) { c.layer_norm_epsilon = 0; }, ATTENDANT_CUDA_F32, 90,
       ATTENDANT_CUDA_INVALID_ARGUMENT},
      {"activation", [](Config& c) { c.activation = 7; }, ATTENDANT_CUDA_F32, 90,
       ATTENDANT_CUDA_INVALID_ARGUMENT},
      {"dtype", [](Config&) {}, 9, 90, ATTENDANT_CUDA_INVALID_ARGUMENT},
      {"ffn", [](Config& c) { c.ffn = 20; }, ATTENDANT_CUDA_BF16, 90, ATTENDANT_CUDA_UNIMPLEMENTED},
      {"ffn in fp8", [](Config& c) { c.ffn = 24; }, ATTENDANT_CUDA_FP8, 90,
       ATTENDANT_CUDA_UNIMPLEMENTED},
      {"hidden", [](Config& c) { c.hidden = 8208, c.heads = 1; }, ATTENDANT_CUDA_BF16, 90,
       ATTENDANT_CUDA_UNIMPLEMENTED},
      {"head_dim", [](Config& c) { c.hidden = 272, c.heads = 1; }, ATTENDANT_CUDA_BF16, 90,
       ATTENDANT_CUDA_UNIMPLEMENTED},
      {"fp8 on 8.0", [](Config&) {}, ATTENDANT_CUDA_FP8, 80, ATTENDANT_CUDA_UNIMPLEMENTED},
      {"fp8 on 10.0", [](Config&) {}, ATTENDANT_CUDA_FP8, 100, ATTENDANT_CUDA_UNIMPLEMENTED},
      {"an old device", [](Config&) {}, ATTENDANT_CUDA_F32, 75, ATTENDANT_CUDA_UNIMPLEMENTED}};
  for (const Refusal& refusal : refusals) {
    Configure({.compute_capability = refusal.capability});
    const RandomEncoder encoder(SmallConfig(), 1);
    AttendantCudaConfig config = SmallConfig();
    refusal.change(config);
    AttendantCudaModel* model = nullptr;
    const AttendantCudaStatus status =
        interface_.create_model(0, &config, &encoder.weights(), refusal.dtype, &model);
    EXPECT_EQ(status.code, refusal.code) << refusal.name << ": " << status.message;
    EXPECT_NE(std::strlen(status.message), 0u);
    EXPECT_EQ(model, nullptr);
  }
}

TEST_F(FailureTest, ADeviceListsWhatItIsFastWith) {
  constexpr uint32_t kAll = 0xf, kNoFp8 = 0x7;
  const std::pair<int, uint32_t> expected[] = {{75, 0},    {80, kNoFp8},  {89, kNoFp8},
                                               {90, kAll}, {100, kNoFp8}, {120, kNoFp8}};
  for (const auto& [capability, dtypes] : expected) {
    Configure({.compute_capability = capability});
    AttendantCudaDevice device{};
    ASSERT_EQ(interface_.describe_device(0, &device).code, ATTENDANT_CUDA_OK);
    EXPECT_EQ(device.dtypes, dtypes) << capability;
    EXPECT_EQ(device.compute_capability, capability);
    EXPECT_STREQ(device.name, "emulated 0");
  }
}

TEST_F(FailureTest, NullsAndLimitsAreErrors) {
  const RandomEncoder encoder(SmallConfig(), 1);
  EXPECT_EQ(interface_.count_devices(nullptr).code, ATTENDANT_CUDA_INVALID_ARGUMENT);
  AttendantCudaWeights weights = encoder.weights();
  weights.segment_embedding = nullptr;
  AttendantCudaModel* model = nullptr;
  EXPECT_EQ(interface_.create_model(0, &encoder.config(), &weights, 0, &model).code,
            ATTENDANT_CUDA_INVALID_ARGUMENT);
  EXPECT_EQ(interface_.create_model(1, &encoder.config(), &encoder.weights(), 0, &model).code,
            ATTENDANT_CUDA_INVALID_ARGUMENT)
      << "there is no such device";
  Make(encoder, ATTENDANT_CUDA_F32, 32, 2);
  SessionPointer none(nullptr, {&interface_});
  for (const int64_t limit : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
    EXPECT_EQ(MakeSession(interface_, model_.get(), limit, 1, none).code,
              ATTENDANT_CUDA_INVALID_ARGUMENT);
    EXPECT_EQ(MakeSession(interface_, model_.get(), 1, limit, none).code,
              ATTENDANT_CUDA_INVALID_ARGUMENT);
  }
  for (const auto& lens : std::vector<std::vector<int64_t>>{{33}, {1, 1, 1}, {}}) {
    EXPECT_EQ(
        RunAll(interface_, session_.get(), encoder.config(), RandomBatch(encoder.config(), lens, 1))
            .status.code,
        ATTENDANT_CUDA_INVALID_ARGUMENT);
  }
  EXPECT_EQ(attendant_cuda_interface(ATTENDANT_CUDA_INTERFACE_VERSION + 1), nullptr);
  Release();
}

TEST_F(FailureTest, NoDriverAndNoDeviceAreUnavailable) {
  int32_t count = -1;
  Configure({.driver = false});
  AttendantCudaStatus status = interface_.count_devices(&count);
  EXPECT_EQ(status.code, ATTENDANT_CUDA_UNAVAILABLE);
  EXPECT_NE(std::strstr(status.message, "no CUDA driver"), nullptr) << status.message;
  Configure({.devices = 0});
  status = interface_.count_devices(&count);
  EXPECT_EQ(status.code, ATTENDANT_CUDA_UNAVAILABLE);
  EXPECT_EQ(count, 0);
}

// Sessions of one model on threads of their own; the profile is read meanwhile.
TEST_F(FailureTest, SessionsRunSideBySide) {
  const RandomEncoder encoder(TinyConfig(), 1);
  Make(encoder, ATTENDANT_CUDA_BF16, kTokens);
  const PackedSequences batch = RandomBatch(encoder.config(), {40, 3}, 2);
  const RunResults expected = Run(encoder.config(), batch);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      SessionPointer session(nullptr, {&interface_});
      ASSERT_EQ(MakeSession(interface_, model_.get(), kTokens, 4, session).code, 0);
      for (int run = 0; run < 20; ++run) {
        EXPECT_EQ(RunAll(interface_, session.get(), encoder.config(), batch).last_hidden_state,
                  expected.last_hidden_state);
        AttendantCudaProfile profile;
        interface_.profile(session_.get(), &profile);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Release();
}

}  // namespace
}  // namespace attendant::cuda_test
