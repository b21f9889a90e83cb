// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/core/backend.h"

namespace attendant {

// Plain loops with sums in double: slow, obviously right, and what the other back ends are checked
// against. Takes f32 only.
std::unique_ptr<Backend> MakeReferenceBackend();

}  // namespace attendant
