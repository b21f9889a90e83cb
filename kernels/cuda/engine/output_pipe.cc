// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/output_pipe.h"

#include <algorithm>

namespace attendant::cuda {
namespace {

constexpr size_t kMaxParts = 4096;

}  // namespace

Status OutputPipe::Start(float* device, float* pinned, int64_t slot_floats) {
  slot_floats_ = slot_floats;
  ATTENDANT_CUDA_TRY(MakeStream(stream_));
  for (int i = 0; i < kOutputSlots; ++i) {
    Slot& slot = slots_[i];
    slot.device = device + i * slot_floats;
    slot.pinned = pinned + i * slot_floats;
    slot.parts.reserve(kMaxParts);
    ATTENDANT_CUDA_TRY(MakeEvent(EventUse::kWaiting, slot.written));
    ATTENDANT_CUDA_TRY(MakeEvent(EventUse::kWaiting, slot.arrived));
  }
  return {};
}

Status OutputPipe::Acquire(int64_t floats, float* destination, cudaStream_t compute,
                           float** device) {
  if (slots_[current_].used + floats > slot_floats_ || slots_[current_].parts.size() == kMaxParts) {
    ATTENDANT_CUDA_TRY(Send(compute));
  }
  Slot& slot = slots_[current_];
  if (slot.travelling) ATTENDANT_CUDA_TRY(Collect(slot));
  *device = slot.device + slot.used;
  slot.parts.push_back({slot.used, floats, destination});
  slot.used = std::min(slot_floats_, (slot.used + floats + 3) / 4 * 4);  // aligned to 16 bytes
  return {};
}

Status OutputPipe::Send(cudaStream_t compute) {
  Slot& slot = slots_[current_];
  if (slot.used == 0 || slot.travelling) return {};
  const char* what = "copying a layer's results";
  ATTENDANT_CUDA_TRY(Check(cudaEventRecord(slot.written.get(), compute), what));
  ATTENDANT_CUDA_TRY(Check(cudaStreamWaitEvent(stream_.get(), slot.written.get(), 0), what));
  ATTENDANT_CUDA_TRY(Check(
      cudaMemcpyAsync(slot.pinned, slot.device, static_cast<size_t>(slot.used) * sizeof(float),
                      cudaMemcpyDeviceToHost, stream_.get()),
      what));
  ATTENDANT_CUDA_TRY(Check(cudaEventRecord(slot.arrived.get(), stream_.get()), what));
  slot.travelling = true;
  current_ = (current_ + 1) % kOutputSlots;
  return {};
}

Status OutputPipe::Collect(Slot& slot) {
  ATTENDANT_CUDA_TRY(Check(cudaEventSynchronize(slot.arrived.get()), "copying a layer's results"));
  for (const Part& part : slot.parts) {
    std::copy_n(slot.pinned + part.begin, part.floats, part.destination);
  }
  slot.parts.clear();
  slot.used = 0;
  slot.travelling = false;
  return {};
}

Status OutputPipe::Finish(cudaStream_t compute) {
  ATTENDANT_CUDA_TRY(Send(compute));
  for (int i = 0; i < kOutputSlots; ++i) {
    Slot& slot = slots_[(current_ + i) % kOutputSlots];  // the oldest first
    if (slot.travelling) ATTENDANT_CUDA_TRY(Collect(slot));
  }
  return {};
}

void OutputPipe::Abandon() {
  cudaStreamSynchronize(stream_.get());
  for (Slot& slot : slots_) {
    slot.parts.clear();
    slot.used = 0;
    slot.travelling = false;
  }
}

}  // namespace attendant::cuda
