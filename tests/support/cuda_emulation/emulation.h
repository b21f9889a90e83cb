// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

// Functions of the emulated CUDA runtime for tests, besides its calls. Work put into a stream does
// not run before somebody waits for it, so that a wait that is missing shows; device memory is
// fresh with every bit of its first megabyte set (NaN in every format), and copies check that both
// sides are inside of what was allocated. Any thread may call anything; work runs one piece at a
// time.
namespace attendant::cuda_emulation {

// When queued work runs.
enum class Schedule {
  kLatest,    // what a wait needs, and nothing else
  kShuffled,  // at a wait, pieces of all streams in a random order that their events allow
};

struct Options {
  int devices = 1;
  int compute_capability = 90;              // 10 * major + minor
  int64_t device_bytes = int64_t{4} << 30;  // of each device
  int64_t pinned_bytes = int64_t{4} << 30;
  Schedule schedule = Schedule::kLatest;
  uint32_t seed = 1;   // of kShuffled
  bool driver = true;  // without: what a machine that has no driver answers
};

// A fresh machine. REQUIRES: nothing is alive. Ends the program otherwise.
void Configure(const Options& options);

// The objects that were made and not yet released.
struct Alive {
  int64_t device_allocations = 0, device_bytes = 0;
  int64_t pinned_allocations = 0, pinned_bytes = 0;
  int64_t streams = 0, events = 0, graphs = 0, executable_graphs = 0, cublas_handles = 0;

  friend bool operator==(const Alive&, const Alive&) = default;
};
Alive CountAlive();

// Calls that can fail, launches and cuBLASLt's among them, since Configure.
int64_t CountCalls();
// Pieces of work that have run since Configure.
int64_t CountWork();
// Allocations of memory (cudaMalloc, cudaHostAlloc) since Configure.
int64_t CountAllocations();

// Lets call `number`, counted from 0 since Configure, return `error` and do nothing (what releases
// releases all the same). A cuBLASLt call returns what it makes of that. After an error that
// IsSticky the device is lost: every later call for it returns the error.
void FailCall(int64_t number, cudaError_t error);
// Lets the piece of work `number`, counted from 0 since Configure in the order in which they run,
// end in `error` as a kernel does that goes wrong: the device is lost, and a later call says so.
void FailWork(int64_t number, cudaError_t error);
bool IsSticky(cudaError_t error);

// Puts `work` into `stream` as a kernel's launch would be: at once or into the graph that is being
// recorded.
cudaError_t EnqueueOnStream(cudaStream_t stream, std::function<void()> work);

}  // namespace attendant::cuda_emulation
