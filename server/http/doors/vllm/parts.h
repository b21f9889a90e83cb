// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/doors/door_call.h"
#include "server/http/http_types.h"
#include "server/http/json/json_view.h"
#include "server/requests/encode_types.h"

namespace attendant {

// Reads truncate_prompt_tokens and truncation_side.
absl::Status VllmTruncationFromJson(JsonView request, EncodeInput& input);
// Properties of a schema that both doors have: those of the truncation, `model` and use_activation.
std::string VllmProperties();

// The identity of an answer.
struct VllmAnswer {
  std::string id;
  std::string model;
  absl::string_view object;  // the word for one of its elements: "score"
  absl::string_view field;   // that has an element's value
};
// Writes a list of so many elements, whose values `append` writes.
void AppendVllmAnswer(const VllmAnswer& answer, size_t elements, int64_t tokens, std::string& json,
                      absl::FunctionRef<void(size_t)> append);
// The JSON Schema of such an answer; `value` is the schema of an element's value.
std::string VllmAnswerSchema(absl::string_view object, absl::string_view field,
                             absl::string_view value);

// POST /score and /v1/score
std::vector<HttpRoute> VllmScoreRoutes(const DoorDependencies& dependencies);
// POST /pooling
HttpRoute VllmPoolingRoute(const DoorDependencies& dependencies);

}  // namespace attendant
