// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"

namespace attendant {

// RESOURCE_EXHAUSTED unless the system allows `count` more threads now: their number, or the
// address space for their stacks, may be limited. Starts them, and ends them.
absl::Status CheckThreadRoom(int count);

}  // namespace attendant
