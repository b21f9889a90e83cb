// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/cuda/runtime/handles.h"
#include "kernels/cuda/runtime/number_types.h"

namespace attendant::cuda {

// Converts `count` values to what `format` stores its states in, rounding as number_types.h does.
// Numbers beyond the format's largest become the largest: finite weights stay finite.
void ConvertToStates(DType dtype, const float* values, int64_t count, void* out);

// The scale of a row of weights: its largest magnitude / 448, 1 for a row that is zeros or below
// 1e-30.
float E4m3Scale(const float* row, int64_t count);

// out [count] e4m3 = values [count] / scale
void QuantizeToE4m3(const float* values, int64_t count, float scale, uint8_t* out);

// Brings f32 tensors of the host's to the device in another format, through two small pieces of
// pinned memory: while one travels, the other is filled.
class WeightUpload {
 public:
  WeightUpload() = default;
  WeightUpload(const WeightUpload&) = delete;
  WeightUpload& operator=(const WeightUpload&) = delete;
  ~WeightUpload();  // nothing is under way any more

  Status Start();

  // device [count] = values [count] in the states' format of `dtype`; null: zeros.
  Status States(DType dtype, const float* values, int64_t count, void* device);
  // device [rows, columns] e4m3 = values [rows, columns] / scales [rows], and the scales.
  Status Quantized(const float* values, int64_t rows, int64_t columns, void* device,
                   float* device_scales);
  // Returns when all of it has arrived.
  Status Finish();

 private:
  // Writes values [begin, begin + count) as they are to be on the device.
  using Write = std::function<void(int64_t begin, int64_t count, std::byte* out)>;
  Status Send(int64_t count, int64_t value_bytes, void* device, const Write& write);

  struct Chunk {
    PinnedMemory memory;
    Event sent;
  };
  Stream stream_;
  Chunk chunks_[2];
  int next_ = 0;
};

}  // namespace attendant::cuda
