// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/model/weight_upload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace attendant::cuda {
namespace {

// Large enough for the bus to run at full speed, small beside any model.
constexpr int64_t kChunkBytes = int64_t{4} << 20;
constexpr float kBf16Max = 0x1.fep127f;
constexpr float kF16Max = 65504.0f;

}  // namespace

void ConvertToStates(DType dtype, const float* values, int64_t count, void* out) {
  switch (StateDType(dtype)) {
    case DType::kBf16:
      std::transform(values, values + count, static_cast<Bf16*>(out),
                     [](float value) { return ToBf16(std::clamp(value, -kBf16Max, kBf16Max)); });
      return;
    case DType::kF16:
      std::transform(values, values + count, static_cast<F16*>(out),
                     [](float value) { return ToF16(std::clamp(value, -kF16Max, kF16Max)); });
      return;
    default:
      std::memcpy(out, values, static_cast<size_t>(count) * sizeof(float));
  }
}

float E4m3Scale(const float* row, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(row[i]));
  return largest < 1e-30f ? 1.0f : largest / kE4m3Max;
}

void QuantizeToE4m3(const float* values, int64_t count, float scale, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = ToE4m3(values[i] / scale).bits;
}

WeightUpload::~WeightUpload() {
  if (stream_ != nullptr) cudaStreamSynchronize(stream_.get());
}

Status WeightUpload::Start() {
  ATTENDANT_CUDA_TRY(MakeStream(stream_));
  for (Chunk& chunk : chunks_) {
    ATTENDANT_CUDA_TRY(AllocatePinned(kChunkBytes, chunk.memory));
    ATTENDANT_CUDA_TRY(MakeEvent(EventUse::kWaiting, chunk.sent));
  }
  return {};
}

Status WeightUpload::Send(int64_t count, int64_t value_bytes, void* device, const Write& write) {
  auto* to = static_cast<std::byte*>(device);
  const int64_t chunk_values = kChunkBytes / value_bytes;
  for (int64_t begin = 0; begin < count; begin += chunk_values) {
    Chunk& chunk = chunks_[next_];
    next_ ^= 1;
    ATTENDANT_CUDA_TRY(Check(cudaEventSynchronize(chunk.sent.get()), "uploading weights"));
    const int64_t values = std::min(chunk_values, count - begin);
    write(begin, values, chunk.memory.get());
    ATTENDANT_CUDA_TRY(Check(cudaMemcpyAsync(to + begin * value_bytes, chunk.memory.get(),
                                             static_cast<size_t>(values * value_bytes),
                                             cudaMemcpyHostToDevice, stream_.get()),
                             "uploading weights"));
    ATTENDANT_CUDA_TRY(
        Check(cudaEventRecord(chunk.sent.get(), stream_.get()), "uploading weights"));
  }
  return {};
}

Status WeightUpload::States(DType dtype, const float* values, int64_t count, void* device) {
  return Send(count, StateBytes(dtype), device, [&](int64_t begin, int64_t piece, std::byte* out) {
    if (values == nullptr) {
      std::memset(out, 0, static_cast<size_t>(piece * StateBytes(dtype)));
    } else {
      ConvertToStates(dtype, values + begin, piece, out);
    }
  });
}

Status WeightUpload::Quantized(const float* values, int64_t rows, int64_t columns, void* device,
                               float* device_scales) {
  std::vector<float> scales(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    scales[static_cast<size_t>(row)] = E4m3Scale(values + row * columns, columns);
  }
  ATTENDANT_CUDA_TRY(States(DType::kF32, scales.data(), rows, device_scales));
  // A piece ends where the memory does, within a row as well.
  return Send(rows * columns, 1, device, [&](int64_t begin, int64_t piece, std::byte* out) {
    for (int64_t at = begin; at < begin + piece;) {
      const int64_t row = at / columns;
      const int64_t end = std::min(begin + piece, (row + 1) * columns);
      QuantizeToE4m3(values + at, end - at, scales[static_cast<size_t>(row)],
                     reinterpret_cast<uint8_t*>(out) + (at - begin));
      at = end;
    }
  });
}

Status WeightUpload::Finish() {
  return Check(cudaStreamSynchronize(stream_.get()), "uploading weights");
}

}  // namespace attendant::cuda
