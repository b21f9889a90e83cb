// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/core/backend.h"

namespace attendant {

struct BackendOptions {
  // The highest level that the cpu back end may use (cpu/cpu_isa.h has the names). Any but "auto"
  // holds oneDNN down as well, for the whole process and for good.
  std::string cpu_isa = "auto";
  int load_threads = 1;  // that Prepare may use
};

// The back end called `name`: "cpu" (oneDNN), "reference" (plain loops, slow: for checking the
// others), or "auto", the fastest that this build has: "cpu". INVALID_ARGUMENT for any other name
// or cpu_isa; UNAVAILABLE when it cannot run on this machine, FAILED_PRECONDITION when oneDNN is in
// use at another level.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name,
                                                     const BackendOptions& options = {});

// The number format that a user's word stands for: "f32", "bf16", "int8", or "auto", the fastest
// format of `backend` whose answers stay within rounding of f32's. INVALID_ARGUMENT for any other
// word.
absl::StatusOr<DType> ChooseDType(absl::string_view name, const Backend& backend);

}  // namespace attendant
