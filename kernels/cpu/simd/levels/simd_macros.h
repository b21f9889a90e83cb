// SPDX-License-Identifier: Apache-2.0
#pragma once

// For the files of an instruction set (simd_*.h) and the kernels that are written in them.
// Everything there is inlined into the including file, which alone is compiled for the
// instructions, and nothing of the standard library is used: a function emitted there and picked by
// the linker for the whole program would carry the instructions to machines that lack them.
#define ATTENDANT_INLINE static inline __attribute__((always_inline))
// Before a loop over an array of vectors that must not leave the registers.
#if defined(__clang__)
#define ATTENDANT_UNROLL _Pragma("unroll")
#else
#define ATTENDANT_UNROLL _Pragma("GCC unroll 8")
#endif
