// SPDX-License-Identifier: Apache-2.0
#include "server/text/base/slot_hash.h"

#include <random>

namespace attendant {

uint64_t SlotHash::ProcessFactor() {
  static const uint64_t factor = [] {
    std::random_device random;
    return uint64_t{random()} << 32 | random() | 1;
  }();
  return factor;
}

}  // namespace attendant
