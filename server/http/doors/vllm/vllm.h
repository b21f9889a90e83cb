// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/http/doors/door_call.h"
#include "server/http/http_types.h"

namespace attendant {

// vLLM's /score, /v1/score and /pooling, beside its embeddings (openai.h) and its ranks
// (cohere/rerank.h). Texts that are too long are refused unless truncate_prompt_tokens is -1.
// `dependencies` must outlive the routes.
std::vector<HttpRoute> VllmRoutes(const DoorDependencies& dependencies);

}  // namespace attendant
