// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "server/http/connection/http_connection.h"
#include "server/http/connection/request_head.h"
#include "server/http/http_routes.h"
#include "server/http/http_types.h"
#include "server/metrics/metric_labels.h"

namespace attendant {

// The way of a request whose head has come: a route takes it, or it has its answer already.
struct Dispatched {
  HttpRoutes::Match match = {};
  // A page of the host, or why there is none. After it the connection ends, whatever the client
  // wants: pages are for clients that ask one thing.
  std::optional<HttpResponse> answer = {};
  HttpEnd end = HttpEnd::kNormal;  // of the connection, after the answer
};

Dispatched DispatchHead(HttpConnection::Host& host, const RequestHead& head);

}  // namespace attendant
