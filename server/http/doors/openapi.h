// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "server/http/http_types.h"

namespace attendant {

// The OpenAPI 3.1 document of `routes`, as JSON.
std::string OpenApiDocument(std::span<const HttpRoute> routes, absl::string_view version);

}  // namespace attendant
