// SPDX-License-Identifier: Apache-2.0
// The emulated runtime runs work as late as its contract allows, refuses what CUDA refuses, and
// counts what is alive: the tests that rest on it show something only then.
#include "tests/support/cuda_emulation/emulation.h"

#include <gtest/gtest.h>

#include <vector>

namespace attendant::cuda_emulation {
namespace {

class EmulationTest : public testing::Test {
 protected:
  void SetUp() override {
    Configure({.devices = 2, .device_bytes = 4096, .pinned_bytes = 4096});
    ASSERT_EQ(cudaStreamCreateWithFlags(&compute_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&copy_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDefault), cudaSuccess);
  }
  void TearDown() override {
    cudaStreamDestroy(compute_);
    cudaStreamDestroy(copy_);
    cudaEventDestroy(event_);
    EXPECT_EQ(CountAlive(), Alive{});
    Configure({});
  }
  void Write(cudaStream_t stream, int number) {
    EXPECT_EQ(EnqueueOnStream(stream, [this, number] { order_.push_back(number); }), cudaSuccess);
  }

  cudaStream_t compute_ = nullptr, copy_ = nullptr;
  cudaEvent_t event_ = nullptr;
  std::vector<int> order_;
};

TEST_F(EmulationTest, WorkRunsWhenSomebodyWaits) {
  Write(compute_, 1);
  Write(copy_, 2);
  EXPECT_TRUE(order_.empty());
  EXPECT_EQ(cudaStreamSynchronize(copy_), cudaSuccess);
  EXPECT_EQ(order_, std::vector<int>{2}) << "the other stream was not asked for";
  EXPECT_EQ(cudaStreamSynchronize(compute_), cudaSuccess);
  EXPECT_EQ(order_, (std::vector<int>{2, 1}));
}

TEST_F(EmulationTest, AnEventOrdersStreams) {
  Write(compute_, 1);
  EXPECT_EQ(cudaEventRecord(event_, compute_), cudaSuccess);
  Write(compute_, 3);
  EXPECT_EQ(cudaStreamWaitEvent(copy_, event_), cudaSuccess);
  Write(copy_, 2);
  EXPECT_EQ(cudaStreamSynchronize(copy_), cudaSuccess);
  EXPECT_EQ(order_, (std::vector<int>{1, 2})) << "what comes before the event, and no more";
}

TEST_F(EmulationTest, AnEventSynchronizesUpToItself) {
  Write(compute_, 1);
  EXPECT_EQ(cudaEventRecord(event_, compute_), cudaSuccess);
  Write(compute_, 2);
  EXPECT_EQ(cudaEventSynchronize(event_), cudaSuccess);
  EXPECT_EQ(order_, std::vector<int>{1});
}

TEST_F(EmulationTest, TimesNeedFinishedEvents) {
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event_, event_), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event_, compute_), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event_, event_), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(event_), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event_, event_), cudaSuccess);
  EXPECT_EQ(milliseconds, 0);
}

TEST_F(EmulationTest, AGraphReplaysWhatItRecorded) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(compute_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  Write(compute_, 1);
  Write(compute_, 2);
  ASSERT_EQ(cudaStreamEndCapture(compute_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(compute_), cudaSuccess);
  EXPECT_TRUE(order_.empty());
  EXPECT_EQ(cudaGraphLaunch(executable, compute_), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, compute_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(compute_), cudaSuccess);
  EXPECT_EQ(order_, (std::vector<int>{1, 2, 1, 2}));
  EXPECT_EQ(CountAlive().graphs, 1);
  cudaGraphDestroy(graph);
  cudaGraphExecDestroy(executable);
}

TEST_F(EmulationTest, WaitingAndAllocatingEndARecording) {
  for (const bool allocate : {false, true}) {
    cudaGraph_t graph = nullptr;
    void* memory = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(compute_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(allocate ? cudaMalloc(&memory, 1) : cudaStreamSynchronize(compute_),
              cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(cudaStreamEndCapture(compute_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(CountAlive().graphs, 0);
  }
}

TEST_F(EmulationTest, MemoryEndsAndCopiesStayInside) {
  void *device = nullptr, *pinned = nullptr, *more = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 1024), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(&pinned, 1024, cudaHostAllocDefault), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&more, 4096), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(device, pinned, 1024, cudaMemcpyHostToDevice, copy_), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(device, pinned, 1025, cudaMemcpyHostToDevice, copy_),
            cudaErrorInvalidValue);
  int value = 0;
  EXPECT_EQ(cudaMemcpyAsync(device, &value, 4, cudaMemcpyHostToDevice, copy_),
            cudaErrorInvalidValue)
      << "not pinned";
  // The copy reads what is there when it runs.
  *static_cast<int*>(pinned) = 7;
  EXPECT_EQ(cudaStreamSynchronize(copy_), cudaSuccess);
  EXPECT_EQ(*static_cast<int*>(device), 7);
  cudaFree(device);
  cudaFreeHost(pinned);
}

TEST_F(EmulationTest, ACallFailsOnce) {
  FailCall(CountCalls(), cudaErrorMemoryAllocation);
  EXPECT_EQ(EnqueueOnStream(compute_, [] {}), cudaErrorMemoryAllocation);
  EXPECT_EQ(EnqueueOnStream(compute_, [] {}), cudaSuccess);
}

TEST_F(EmulationTest, ALostDeviceStaysLost) {
  FailWork(0, cudaErrorIllegalAddress);
  Write(compute_, 1);
  EXPECT_EQ(cudaStreamSynchronize(compute_), cudaErrorIllegalAddress);
  EXPECT_TRUE(order_.empty());
  EXPECT_EQ(EnqueueOnStream(compute_, [] {}), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess) << "the other device works";
  EXPECT_EQ(cudaSetDevice(0), cudaErrorIllegalAddress);
}

// Of two streams that no event orders, either may come first.
TEST(EmulatedScheduleTest, ShuffledTriesOtherOrders) {
  int first_of_copy = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Configure({.schedule = Schedule::kShuffled, .seed = seed});
    cudaStream_t compute, copy;
    ASSERT_EQ(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking), cudaSuccess);
    int state = 0;
    EXPECT_EQ(EnqueueOnStream(compute, [&] { state = state == 0 ? 1 : state; }), cudaSuccess);
    EXPECT_EQ(EnqueueOnStream(copy, [&] { state = state == 0 ? 2 : state; }), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(compute), cudaSuccess);
    first_of_copy += state == 2;
    cudaStreamDestroy(compute);
    cudaStreamDestroy(copy);
  }
  EXPECT_GT(first_of_copy, 2);
  EXPECT_LT(first_of_copy, 18);
  Configure({});
}

TEST(EmulatedDriverTest, NoDriverAndNoDevice) {
  int count = -1;
  Configure({.driver = false});
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  Configure({.devices = 0});
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  Configure({});
}

}  // namespace
}  // namespace attendant::cuda_emulation
