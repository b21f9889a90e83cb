// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "tests/support/cuda/device_run.h"
#include "tests/support/cuda_emulation/emulation.h"

extern "C" const AttendantCudaInterface* attendant_cuda_interface(uint32_t version);

namespace attendant::cuda_test {

// The engine on an emulated machine of which nothing may be left behind.
class EngineTest : public testing::Test {
 protected:
  void SetUp() override { cuda_emulation::Configure({}); }
  void TearDown() override {
    EXPECT_EQ(cuda_emulation::CountAlive(), cuda_emulation::Alive{}) << "something leaked";
    session_.reset();
    model_.reset();
    cuda_emulation::Configure({});
  }

  // A model and a session of it; they are gone when it ends.
  void Make(const RandomEncoder& encoder, int32_t dtype, int64_t max_tokens,
            int64_t max_sequences = 16) {
    AttendantCudaStatus status = MakeModel(interface_, 0, encoder, dtype, model_);
    ASSERT_EQ(status.code, ATTENDANT_CUDA_OK) << status.message;
    status = MakeSession(interface_, model_.get(), max_tokens, max_sequences, session_);
    ASSERT_EQ(status.code, ATTENDANT_CUDA_OK) << status.message;
  }
  void Release() {
    session_.reset();
    model_.reset();
  }
  RunResults Run(const AttendantCudaConfig& config, const PackedSequences& batch,
                 const Inside& inside = {}) {
    RunResults results = RunAll(interface_, session_.get(), config, batch, inside);
    EXPECT_EQ(results.status.code, ATTENDANT_CUDA_OK) << results.status.message;
    return results;
  }

  const AttendantCudaInterface& interface_ =
      *attendant_cuda_interface(ATTENDANT_CUDA_INTERFACE_VERSION);
  ModelPointer model_{nullptr, {&interface_}};
  SessionPointer session_{nullptr, {&interface_}};
};

}  // namespace attendant::cuda_test
