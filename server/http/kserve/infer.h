// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "server/http/doors/door_call.h"
#include "server/http/http_types.h"
#include "server/protocols/kserve/models.h"

namespace attendant {

// The bytes of JSON in a body; tensors as bytes follow it.
inline constexpr absl::string_view kJsonLengthHeader = "inference-header-content-length";

// {"error": ..}
HttpResponse KServeError(const HttpFailure& failure);

// Runs an inference request to its end. `version` empty: the highest that serves.
void StartHttpInfer(const DoorDependencies& dependencies, const KServeModels& models,
                    std::string model, std::string version, std::unique_ptr<HttpExchange> exchange);

}  // namespace attendant
