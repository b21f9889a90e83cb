// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/core/encoder_config.h"

namespace attendant {

struct Switched {
  const char* name;
  EncoderConfig config;
};

// Every switch of EncoderConfig, alone and with others: three layers of four heads on 64 channels.
const std::vector<Switched>& AllSwitched();

}  // namespace attendant
