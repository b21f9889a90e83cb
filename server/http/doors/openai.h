// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/doors/door_call.h"
#include "server/http/http_types.h"
#include "server/http/json/json_view.h"
#include "server/requests/encode_types.h"

namespace attendant {

// OpenAI's /v1/embeddings and /v1/models. A text that is too long is refused, as there, unless a
// field asks for a cut. With `dimensions`, or Voyage's output_dimension, embeddings have length 1,
// else they are as the model says; fields of other clients (dialects.h) say otherwise. A request
// without `model` gets the one that NamedOrOnlyModel says. `dependencies` must outlive the routes.
std::vector<HttpRoute> OpenAiRoutes(const DoorDependencies& dependencies);

// {"error": {"message": .., "type": .., ..}}
HttpResponse OpenAiError(const HttpFailure& failure);

// Reads encoding_format: float, or base64.
absl::Status Base64FromJson(JsonView request, bool& base64);
inline constexpr absl::string_view kEncodingFormatSchema =
    R"({"enum":["float","base64"],"default":"float"})";

// Cuts on the right where vLLM's truncate_prompt_tokens is -1. INVALID_ARGUMENT for other numbers.
absl::Status PromptTokensFromJson(JsonView request, Truncation& truncation);
inline constexpr absl::string_view kPromptTokensSchema = R"({"type":"integer","enum":[-1]})";

// INVALID_ARGUMENT where vLLM's add_special_tokens is false.
absl::Status CheckSpecialTokens(JsonView request);

// The route of /v1/embeddings on another path, as TEI answers: embeddings have length 1 whatever
// the model says, and long texts are cut, unless a request says no. `summary` is for the OpenAPI
// document.
HttpRoute NormalizedEmbeddingsRoute(const DoorDependencies& dependencies, std::string path,
                                    std::string summary);

}  // namespace attendant
