// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/engine/conversion.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace attendant::cuda {
namespace {

constexpr float kBf16Max = 0x1.fep127f;
constexpr float kF16Max = 65504.0f;

}  // namespace

void ConvertToStates(Format format, const float* values, int64_t count, void* out) {
  switch (StateFormat(format)) {
    case Format::kBf16:
      std::transform(values, values + count, static_cast<Bf16*>(out),
                     [](float value) { return ToBf16(std::clamp(value, -kBf16Max, kBf16Max)); });
      return;
    case Format::kF16:
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

}  // namespace attendant::cuda
