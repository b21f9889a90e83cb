// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/http/doors/door_call.h"
#include "server/http/http_types.h"

namespace attendant {

// OpenAI's /v1/embeddings and /v1/models. A text that is too long is refused, as there;
// truncate_prompt_tokens = -1 (vLLM's) cuts it. `dependencies` must outlive the routes.
std::vector<HttpRoute> OpenAiRoutes(const DoorDependencies& dependencies);

}  // namespace attendant
