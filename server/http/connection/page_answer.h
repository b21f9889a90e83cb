// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"
#include "server/http/connection/http_connection.h"
#include "server/http/http_routes.h"
#include "server/http/http_types.h"

namespace attendant {

// The answer to a request that no route takes: a page of the host, or why there is none. `match` is
// what the routes have for method and path.
HttpResponse PageAnswer(HttpConnection::Host& host, const HttpRoutes::Match& match,
                        absl::string_view method, absl::string_view path);

}  // namespace attendant
