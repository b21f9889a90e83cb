// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/backend.h"

namespace attendant {

// The back end called `name`: "cpu" (oneDNN), "reference" (plain loops, slow: for checking the
// others), or "auto", the fastest that this build has: "cpu". INVALID_ARGUMENT for any other name;
// UNAVAILABLE when it cannot run on this machine.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name);

// The number format that a user's word stands for: "f32", "bf16", "int8", or "auto", the fastest
// format of `backend` whose answers stay within rounding of f32's. INVALID_ARGUMENT for any other
// word.
absl::StatusOr<DType> ChooseDType(absl::string_view name, const Backend& backend);

}  // namespace attendant
