// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/http/doors/door_call.h"
#include "server/http/http_types.h"

namespace attendant {

// /v1/ranking of NVIDIA's NeMo Retriever: passages by how well they answer a query, with the
// reranker's logits. Long passages are refused unless `truncate` says START or END.
// `dependencies` must outlive the routes.
std::vector<HttpRoute> NimRoutes(const DoorDependencies& dependencies);

}  // namespace attendant
