// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/http/doors/door_call.h"
#include "server/http/doors/translation.h"
#include "server/http/http_types.h"

namespace attendant {

// Cohere's /v2/rerank and Jina's /v1/rerank, which vLLM serves too: one shape, but Jina's answer
// has the documents unless return_documents is false, and top_n may be 0, for all. A score is the
// sigmoid of the reranker's logit unless the request asks for that itself. `dependencies` must
// outlive the routes.
std::vector<HttpRoute> RerankRoutes(const DoorDependencies& dependencies);

// Jina's shape on another path. The answer has this id and this name of a model.
std::unique_ptr<DoorTranslation> NewJinaRerank(std::string id, std::string model);
// The schema of its request, which need not name a model, and of the answer.
std::string JinaRerankSchema();
inline constexpr char kRerankResponse[] = R"({"type":"object","properties":{"id":{"type":"string"},
"model":{"type":"string"},"results":{"type":"array","items":{"type":"object","properties":{
"index":{"type":"integer"},"relevance_score":{"type":"number"},
"document":{"type":"object","properties":{"text":{"type":"string"}}}}}},
"usage":{"type":"object","properties":{"prompt_tokens":{"type":"integer"},
"total_tokens":{"type":"integer"}}},
"meta":{"type":"object"}}})";

}  // namespace attendant
