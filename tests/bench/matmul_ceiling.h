// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/dtype.h"
#include "kernels/core/encoder_config.h"
#include "kernels/cpu/simd/cpu_isa.h"

namespace attendant::bench {

// FLOP/s of the model's four weight matmuls alone, by oneDNN or the engine's, whichever is faster,
// `threads` threads each with its own rows: what no encoder with the instruction set `isa` can
// exceed on this machine. Measures for about 4 * `seconds`. REQUIRES: LimitOneDnn has held oneDNN
// down to `isa`, as MakeBackend does.
double MatmulCeiling(const EncoderConfig& config, DType dtype, cpu::CpuIsa isa, int threads,
                     double seconds);

}  // namespace attendant::bench
