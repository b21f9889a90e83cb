// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace attendant::bench {

// Ends the program with the reason on standard error.
[[noreturn]] void Die(const absl::Status& status);

// Seconds of a clock that never goes back.
double Now();
// Seconds that all threads of this process have computed.
double CpuSeconds();

// Calls `work` until `seconds` have passed, at least once: seconds per call.
double SecondsPerCall(double seconds, absl::FunctionRef<void()> work);

// The same, but the time of every single call, ascending.
std::vector<double> SecondsOfCalls(double seconds, absl::FunctionRef<void()> work);

}  // namespace attendant::bench
