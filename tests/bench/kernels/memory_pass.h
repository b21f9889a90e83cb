// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant::bench {

// Touch bytes as fast as the processor can, with its widest vectors, and do nothing else: what a
// kernel would take if its arithmetic cost nothing. `bytes` need not be a multiple of the vector;
// what is beyond the last whole 64 bytes is left out.
void ReadBytes(const void* bytes, int64_t num_bytes);
void WriteBytes(void* bytes, int64_t num_bytes);
void ReadAndWriteBytes(void* bytes, int64_t num_bytes);

}  // namespace attendant::bench
