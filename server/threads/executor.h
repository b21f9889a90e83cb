// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/functional/any_invocable.h"

namespace attendant {

// Runs a function soon, on a thread that may be kept busy. Thread-safe.
using Executor = std::function<void(absl::AnyInvocable<void()>)>;

}  // namespace attendant
