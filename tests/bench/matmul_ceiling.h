// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/dtype.h"
#include "kernels/core/encoder_config.h"

namespace attendant::bench {

// FLOP/s of the model's four weight matmuls alone, by oneDNN or the engine's, whichever is faster,
// `threads` threads each with its own rows: what no encoder on this machine can exceed. Measures
// for about 4 * `seconds`.
double MatmulCeiling(const EncoderConfig& config, DType dtype, int threads, double seconds);

}  // namespace attendant::bench
