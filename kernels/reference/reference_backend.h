// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/core/backend.h"

namespace attendant {

// Plain loops with sums in double: slow and simple. Tests check the other back ends against it.
// Takes f32 only.
std::unique_ptr<Backend> MakeReferenceBackend();

}  // namespace attendant
