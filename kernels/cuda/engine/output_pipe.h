// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/engine/session_buffers.h"

namespace attendant::cuda {

// Brings results from the middle of a run to its caller's memory while the run goes on: kernels
// write f32 into a slot on the device, the slot travels to pinned memory on a stream of its own,
// and from there its parts go where the caller wants them.
class OutputPipe {
 public:
  // Slots of `slot_floats`, one behind the other at both pointers.
  Status Start(float* device, float* pinned, int64_t slot_floats);

  int64_t slot_floats() const { return slot_floats_; }
  // Device memory for `floats` that end up at `destination`; the caller puts what writes them into
  // `compute` before its next call. May wait for a slot that is still travelling.
  // REQUIRES: 0 < floats <= slot_floats.
  Status Acquire(int64_t floats, float* destination, cudaStream_t compute, float** device);
  // The outputs taken so far may travel.
  Status Send(cudaStream_t compute);
  // Waits until all outputs are at their destinations.
  Status Finish(cudaStream_t compute);
  // Forgets the copies under way, after an error. Nothing is written to a destination any more.
  void Abandon();

 private:
  struct Part {
    int64_t begin, floats;  // in the slot
    float* destination;
  };
  struct Slot {
    float* device = nullptr;
    float* pinned = nullptr;
    int64_t used = 0;
    bool travelling = false;
    Event written, arrived;
    std::vector<Part> parts;
  };
  Status Collect(Slot& slot);

  Slot slots_[kOutputSlots];
  int64_t slot_floats_ = 0;
  int current_ = 0;
  Stream stream_;
};

}  // namespace attendant::cuda
