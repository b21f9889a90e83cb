// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/http/doors/door_call.h"
#include "server/http/http_types.h"

namespace attendant {

// The KServe v2 protocol over HTTP as Triton's clients speak it: health, metadata, configuration,
// statistics and inference, with tensors as JSON or as bytes. Names and tensors are those of
// inference.GRPCInferenceService. `dependencies` must outlive the routes.
std::vector<HttpRoute> KServeRoutes(const DoorDependencies& dependencies);

}  // namespace attendant
