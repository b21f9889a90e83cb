// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/http/doors/door_call.h"
#include "server/http/http_types.h"

namespace attendant {

// Cohere's /v1/embed and /v2/embed for texts: float, base64, int8, binary and ubinary; version 1
// without embedding_types a list of floats. input_type chooses the model's prompt. The answer does
// not repeat the texts. `dependencies` must outlive the routes.
std::vector<HttpRoute> CohereRoutes(const DoorDependencies& dependencies);

// {"message": ..}
HttpResponse CohereError(const HttpFailure& failure);
// The request's id, or a new one.
std::string AnswerId(const RequestCall& call);

}  // namespace attendant
