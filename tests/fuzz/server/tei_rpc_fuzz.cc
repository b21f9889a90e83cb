// SPDX-License-Identifier: Apache-2.0
// Bytes of any kind to every method of tei.v1, through a real connection.
#include "tests/fuzz/harness.h"
#include "tests/fuzz/server/fuzzed_call.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attendant::CallWithBytes(attendant::kFuzzedTei, data, size);
  return 0;
}
