// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/cuda/kernels/number_types.h"

// Weights to the device's formats, on the host.
namespace attendant::cuda {

// Converts `count` values to what `format` stores its states in, rounding as number_types.h does.
// Numbers beyond the format's largest become the largest: finite weights stay finite.
void ConvertToStates(Format format, const float* values, int64_t count, void* out);

// The scale of a row of weights: its largest magnitude / 448, 1 for a row that is zeros or below
// 1e-30.
float E4m3Scale(const float* row, int64_t count);

// out [count] e4m3 = values [count] / scale
void QuantizeToE4m3(const float* values, int64_t count, float scale, uint8_t* out);

}  // namespace attendant::cuda
