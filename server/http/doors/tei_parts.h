// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "server/http/doors/door_call.h"
#include "server/http/http_types.h"
#include "server/http/json/json_view.h"
#include "server/requests/encode_types.h"

namespace attendant {

// {"error": .., "error_type": ..}
HttpResponse TeiError(const HttpFailure& failure);

// Reads truncate and truncation_direction. INVALID_ARGUMENT also for what the server does not have:
// cutting on the left, and prompts.
absl::Status TeiTruncationFromJson(JsonView request, Truncation& truncation);

// A route for requests that a run of type Run answers.
template <typename Run>
HttpRoute TeiRoute(const DoorDependencies& dependencies, const char* path, Method method,
                   HttpRouteDoc doc) {
  return MakeHttpRoute(
      "POST", path, MethodGroup::kInfer, TeiError,
      [&dependencies, method](std::unique_ptr<HttpExchange> exchange) {
        StartUnnamedRun<Run>(dependencies, method, std::move(exchange));
      },
      std::move(doc));
}

// POST /tokenize
HttpRoute TeiTokenizeRoute(const DoorDependencies& dependencies);
// POST /rerank and /predict
std::vector<HttpRoute> TeiScoreRoutes(const DoorDependencies& dependencies);

}  // namespace attendant
