// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace attendant {

// Raises this process's limit of open file descriptors as far as the system allows without a
// privilege (the soft limit is often 1024, the hard one half a million). Returns the limit in
// force.
int64_t RaiseDescriptorLimit();

// How many of `descriptors` may be connections: the rest is for models, ports, logs and libraries.
int64_t ConnectionsWithin(int64_t descriptors);

}  // namespace attendant
