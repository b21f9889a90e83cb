// SPDX-License-Identifier: Apache-2.0
#include "server/http/doors/vllm/vllm.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/core/status_macros.h"
#include "server/http/doors/inputs.h"
#include "server/http/doors/openai.h"
#include "server/http/doors/vllm/parts.h"
#include "server/http/json/json_writer.h"

namespace attendant {

absl::Status VllmTruncationFromJson(JsonView request, EncodeInput& input) {
  input.truncation = Truncation::kNone;
  ATTENDANT_RETURN_IF_ERROR(PromptTokensFromJson(request, input.truncation));
  std::optional<Truncation> side;
  ATTENDANT_RETURN_IF_ERROR(SideFromJson(request, "truncation_side", side));
  if (input.truncation == Truncation::kRight) input.truncation = side.value_or(Truncation::kRight);
  return absl::OkStatus();
}

std::string VllmProperties() {
  return absl::StrCat(R"("model":{"type":"string"},"user":{"type":"string"},)"
                      R"("truncate_prompt_tokens":)",
                      kPromptTokensSchema,
                      R"(,"truncation_side":{"enum":["left","right"],"default":"right"},)"
                      R"("use_activation":{"type":"boolean","default":true})");
}

void AppendVllmAnswer(const VllmAnswer& answer, size_t elements, int64_t tokens, std::string& json,
                      absl::FunctionRef<void(size_t)> append) {
  json = "{\"id\":";
  AppendJsonString(answer.id, json);
  absl::StrAppend(&json, ",\"object\":\"list\",\"created\":", absl::ToUnixSeconds(absl::Now()),
                  ",\"model\":");
  AppendJsonString(answer.model, json);
  json += ",\"data\":[";
  for (size_t i = 0; i < elements; ++i) {
    absl::StrAppend(&json, i == 0 ? "" : ",", "{\"index\":", i, ",\"object\":\"", answer.object,
                    "\",\"", answer.field, "\":");
    append(i);
    json += "}";
  }
  absl::StrAppend(&json, "],\"usage\":{\"prompt_tokens\":", tokens, ",\"total_tokens\":", tokens,
                  ",\"completion_tokens\":0}}");
}

std::string VllmAnswerSchema(absl::string_view object, absl::string_view field,
                             absl::string_view value) {
  return absl::StrCat(
      R"({"type":"object","properties":{"id":{"type":"string"},"object":{"const":"list"},)"
      R"("created":{"type":"integer"},"model":{"type":"string"},"data":{"type":"array",)"
      R"("items":{"type":"object","properties":{"index":{"type":"integer"},"object":{"const":")",
      object, R"("},")", field, R"(":)", value,
      R"(}}},"usage":{"type":"object","properties":{"prompt_tokens":{"type":"integer"},)"
      R"("total_tokens":{"type":"integer"},"completion_tokens":{"type":"integer"}}}}})");
}

std::vector<HttpRoute> VllmRoutes(const DoorDependencies& dependencies) {
  std::vector<HttpRoute> routes = VllmScoreRoutes(dependencies);
  routes.push_back(VllmPoolingRoute(dependencies));
  return routes;
}

}  // namespace attendant
