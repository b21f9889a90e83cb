// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant {

// The heap of a program that links heap_peak.cc, of all threads and shared libraries: bytes that
// are allocated and not freed. What freed memory the allocator keeps does not count, so it hides no
// growth. Thread-safe.

// The most bytes since the last call, minus those at the last call. The first call gives 0.
int64_t HeapGrowth();

}  // namespace attendant
