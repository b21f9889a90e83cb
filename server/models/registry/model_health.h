// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/models/registry/model_entry.h"
#include "server/models/registry/registry_options.h"

namespace attendant {

// The health of the server, as its models make it. The entries are those of a ModelTable; `now` is
// a steady time.

// OK when the server is ready and no model has stalled; else UNAVAILABLE, naming a model that is
// not and why. A server without any model is ready where clients load models (kExplicit). Only
// `readiness` and `control` of the options count.
absl::Status CheckReady(const std::vector<ModelEntry>& entries, const RegistryOptions& options,
                        absl::Time now);

// UNAVAILABLE when a device is lost, and no model serves or loads: a new process could use it.
absl::Status CheckLive(const std::vector<ModelEntry>& entries, absl::Time now);

}  // namespace attendant
