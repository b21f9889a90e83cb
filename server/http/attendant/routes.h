// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/http/doors/door_call.h"
#include "server/http/http_types.h"
#include "server/protocols/attention/attend_run.h"

namespace attendant {

// The unary methods of attendant.v1 as JSON, at the paths and with the errors of the Connect
// protocol: POST /attendant.v1.Encoder/Encode. `attention` is null where that service is off.
// `dependencies` must outlive the routes.
std::vector<HttpRoute> AttendantRoutes(const DoorDependencies& dependencies,
                                       const AttendDependencies* attention);

}  // namespace attendant
