// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Each harness defines this; libFuzzer, or replay_main.cc, calls it with one input after the other.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
