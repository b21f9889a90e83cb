// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

// Each harness defines this; libFuzzer, or replay_main.cc, calls it with one input after the other.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace attendant {

// Ends the process, saying which promise is broken, unless it is held.
inline void Require(bool held, const std::string& promise) {
  if (held) return;
  std::fprintf(stderr, "broken: %s\n", promise.c_str());
  std::abort();
}

}  // namespace attendant
