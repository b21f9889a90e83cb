// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/kernels/memory_pass.h"

#include <immintrin.h>

// An empty instruction that the compiler believes to use `value`.
#define ATTENDANT_USE(value) asm volatile("" : : "x"(value))
#define ATTENDANT_AVX512 __attribute__((target("avx512f")))
#define ATTENDANT_AVX2 __attribute__((target("avx2")))

namespace attendant::bench {
namespace {

ATTENDANT_AVX512 void ReadAvx512(const char* bytes, int64_t num_bytes) {
  for (int64_t i = 0; i + 64 <= num_bytes; i += 64) ATTENDANT_USE(_mm512_loadu_si512(bytes + i));
}
ATTENDANT_AVX2 void ReadAvx2(const char* bytes, int64_t num_bytes) {
  for (int64_t i = 0; i + 64 <= num_bytes; i += 64) {
    const auto* values = reinterpret_cast<const __m256i*>(bytes + i);
    ATTENDANT_USE(_mm256_loadu_si256(values));
    ATTENDANT_USE(_mm256_loadu_si256(values + 1));
  }
}

ATTENDANT_AVX512 void WriteAvx512(char* bytes, int64_t num_bytes) {
  const __m512i zero = _mm512_setzero_si512();
  for (int64_t i = 0; i + 64 <= num_bytes; i += 64) {
    _mm512_storeu_si512(bytes + i, zero);
    asm volatile("" : : : "memory");  // no call of memset
  }
}
ATTENDANT_AVX2 void WriteAvx2(char* bytes, int64_t num_bytes) {
  const __m256i zero = _mm256_setzero_si256();
  for (int64_t i = 0; i + 32 <= num_bytes; i += 32) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(bytes + i), zero);
    asm volatile("" : : : "memory");
  }
}

ATTENDANT_AVX512 void UpdateAvx512(char* bytes, int64_t num_bytes) {
  for (int64_t i = 0; i + 64 <= num_bytes; i += 64) {
    __m512i value = _mm512_loadu_si512(bytes + i);
    asm volatile("" : "+x"(value));
    _mm512_storeu_si512(bytes + i, value);
  }
}
ATTENDANT_AVX2 void UpdateAvx2(char* bytes, int64_t num_bytes) {
  for (int64_t i = 0; i + 32 <= num_bytes; i += 32) {
    auto* at = reinterpret_cast<__m256i*>(bytes + i);
    __m256i value = _mm256_loadu_si256(at);
    asm volatile("" : "+x"(value));
    _mm256_storeu_si256(at, value);
  }
}

const bool kHasAvx512 = __builtin_cpu_supports("avx512f");

}  // namespace

void ReadBytes(const void* bytes, int64_t num_bytes) {
  (kHasAvx512 ? ReadAvx512 : ReadAvx2)(static_cast<const char*>(bytes), num_bytes);
}
void WriteBytes(void* bytes, int64_t num_bytes) {
  (kHasAvx512 ? WriteAvx512 : WriteAvx2)(static_cast<char*>(bytes), num_bytes);
}
void ReadAndWriteBytes(void* bytes, int64_t num_bytes) {
  (kHasAvx512 ? UpdateAvx512 : UpdateAvx2)(static_cast<char*>(bytes), num_bytes);
}

}  // namespace attendant::bench
