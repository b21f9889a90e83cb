// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/cuda_emulation/emulation.h"

// The emulated machine's insides; calls are in memory.cc, streams.cc, graphs.cc and cublaslt.cc.
namespace attendant::cuda_emulation {

struct EventState {
  int64_t recorded = 0;  // how often a record was put into a stream
  int64_t done = 0;      // the last of these that ran
  std::chrono::steady_clock::time_point time;
  CUstream_st* stream = nullptr;  // of the last record
  bool timed = true;
};

// A piece of a stream's work: runs `work`, then marks the event, or waits for it.
struct Piece {
  std::function<void()> work;  // or null
  std::shared_ptr<EventState> event;
  int64_t record = 0;               // of `event`
  CUstream_st* wait_for = nullptr;  // whose `record` of `event` must have run; null: this is one
};

struct Allocation {
  size_t bytes = 0;
  int device = 0;
  bool pinned = false;
};

struct Device {
  int64_t used_bytes = 0;
  cudaError_t lost = cudaSuccess;
};

struct Machine {
  std::mutex mutex;  // guards all of it
  Options options;
  std::vector<Device> devices{1};
  Alive alive;
  int64_t calls = 0, allocations = 0, work_run = 0;
  std::map<int64_t, cudaError_t> failing_calls, failing_work;
  std::map<const std::byte*, Allocation> memory;
  std::map<std::pair<int, const void*>, int> shared_bytes;  // cudaFuncSetAttribute's, by device
  std::vector<CUstream_st*> streams;
  std::mt19937 random{1};
};
Machine& TheMachine();

// The state of a host thread: each thread has its own.
struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  CUstream_st* capturing = nullptr;
};
ThreadState& ThisThread();

// Counts a call for `device` and says how it fails before it does anything.
cudaError_t BeginCall(Machine& machine, int device);
// Remembers an error for cudaGetLastError.
cudaError_t EndCall(cudaError_t error);

// One call of the interface: `body` under the lock, unless the call fails first.
template <typename Body>
cudaError_t Call(int device, Body body) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mutex);
  const cudaError_t error = BeginCall(machine, device);
  return EndCall(error == cudaSuccess ? body(machine) : error);
}
// The same for a call that releases something, which it does also when it fails.
template <typename Body>
cudaError_t ReleasingCall(int device, Body body) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mutex);
  const cudaError_t error = BeginCall(machine, device);
  const cudaError_t released = body(machine);
  return EndCall(error == cudaSuccess ? released : error);
}

// The largest shared memory of a block in bytes, after cudaFuncSetAttribute, on a device of this
// compute capability (80, 90).
int MaxSharedBytes(int compute_capability);

// True if [pointer, pointer + bytes) lies in one allocation: of pinned host memory if `pinned`,
// else of device memory.
bool IsInside(const Machine& machine, const void* pointer, size_t bytes, bool pinned);

// Puts a piece into the stream, or into the graph that it records. REQUIRES: the lock is held.
cudaError_t Enqueue(Machine& machine, CUstream_st* stream, std::function<void()> work);
// Runs queued work until `stream` is empty, or until `event`'s last record has run.
cudaError_t Drain(Machine& machine, CUstream_st* stream);
void RunUntilDone(Machine& machine, const EventState& event);
// The check at the start of each call that CUDA forbids during stream capture: cudaSuccess unless
// the calling thread records a graph.
cudaError_t RefuseWhileCapturing();

}  // namespace attendant::cuda_emulation

struct CUgraph_st {
  std::vector<std::function<void()>> work;
};
struct CUgraphExec_st {
  int device = 0;
  std::vector<std::function<void()>> work;
};
struct CUstream_st {
  int device = 0;
  std::deque<attendant::cuda_emulation::Piece> queue;
  CUgraph_st* recording = nullptr;
  bool recording_failed = false;
};
struct CUevent_st {
  int device = 0;
  std::shared_ptr<attendant::cuda_emulation::EventState> state;
};
