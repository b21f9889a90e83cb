// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/http/doors/door_call.h"
#include "server/http/http_types.h"

namespace attendant {

// The paths of text-embeddings-inference: /, /embed, /rerank, /info, /health and so on.
// Requests name no model: NamedOrOnlyModel says which one is meant. `dependencies` must outlive the
// routes.
std::vector<HttpRoute> TeiRoutes(const DoorDependencies& dependencies);

}  // namespace attendant
