// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/http/doors/door_call.h"
#include "server/http/http_types.h"

namespace attendant {

// The console: its page at "/", the page's files below "/console/", and "/console/live", the
// numbers of its charts. The files hold no data and are open to anybody; all that the page shows it
// asks for with the API key that its user enters. `dependencies` must outlive the routes.
std::vector<HttpRoute> ConsoleRoutes(const DoorDependencies& dependencies);

}  // namespace attendant
