// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cpu/simd/cpu_isa.h"
#include "kernels/cpu/simd/vector_kernels.h"

namespace attendant::cpu {

// The implementation of matmuls.
enum class MatmulChoice : uint8_t {
  kAuto,    // the faster one by measurement: the tiles, on every level
  kOneDnn,  // oneDNN, where it has a fast and right matmul
  kTiles,   // the register tiles, where they have one
};

absl::string_view MatmulChoiceName(MatmulChoice choice);  // "auto", "onednn", "tiles"

// INVALID_ARGUMENT, with the names that exist, for any other word.
absl::StatusOr<MatmulChoice> ParseMatmulChoice(absl::string_view name);

// The kernels of one instruction set, the implementation of matmuls beside them, and whether its
// matmuls in bf16 are faster than those in f32, as those in int8 are everywhere. Nothing remembers
// a level for the process: whoever computes gets it as an argument.
struct IsaLevel {
  CpuIsa isa;
  MatmulChoice matmul;
  const VectorKernels& kernels;
  bool bf16;
};

// The level asked for, for kAuto the best of this machine. It lives as long as the process.
// UNAVAILABLE, saying what is missing, when the machine lacks it. Asks the processor, which takes a
// virtual machine microseconds: callers find a level once and pass it on.
absl::StatusOr<const IsaLevel*> FindIsaLevel(CpuIsa isa, MatmulChoice matmul = MatmulChoice::kAuto);

}  // namespace attendant::cpu
