// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/load/protocols/http/http_caller.h"
#include "client/load/protocols/kserve_request.h"

namespace attendant::client {

// A request of KServe v2 as it goes over HTTP. With tensors as bytes, as tritonclient sends them:
// JSON, then the tensors in their order, and headers that tell the length of the JSON and the type
// of the whole. With `json_tensors` all is JSON. The server is asked for outputs of the same form.
HttpRequest ToKserveHttpRequest(const KserveRequest& request, bool json_tensors);

}  // namespace attendant::client
