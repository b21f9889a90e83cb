// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <memory>
#include <new>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/heads/head.h"

namespace attendant::cpu {

// A Runner of these arguments, whose constructor throws. Errors as Head::NewRunner has them.
template <typename Runner, typename... Args>
absl::StatusOr<std::unique_ptr<HeadRunner>> MakeRunner(const Args&... args) {
  try {
    return std::make_unique<Runner>(args...);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("a head's scratch memory does not fit in memory");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("cannot make a head's runner: ", error.what()));
  }
}

}  // namespace attendant::cpu
