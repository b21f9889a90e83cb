// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

namespace attendant::cpu {

// Flush-to-zero and denormals-are-zero: arithmetic on denormals is up to 100 times slower, and
// softmax makes them.
inline constexpr unsigned kFlushDenormals = 0x8040;

inline void FlushDenormals() { _mm_setcsr(_mm_getcsr() | kFlushDenormals); }

// The same for the calling thread while in scope.
class ScopedDenormalFlush {
 public:
  ScopedDenormalFlush() : saved_(_mm_getcsr()) { FlushDenormals(); }
  ~ScopedDenormalFlush() { _mm_setcsr(saved_); }
  ScopedDenormalFlush(const ScopedDenormalFlush&) = delete;
  ScopedDenormalFlush& operator=(const ScopedDenormalFlush&) = delete;

 private:
  unsigned saved_;
};

}  // namespace attendant::cpu
