// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/load/protocols/http/http_load.h"
#include "client/load/protocols/protocols.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

// Of the array of base64 that `body` begins with.
int64_t CountStrings(absl::string_view body) {
  body = body.substr(0, body.find(']'));
  return std::count(body.begin(), body.end(), '"') / 2;
}

}  // namespace

absl::StatusOr<Target> MakeCohereTarget(const TargetSpec& spec) {
  ATTENDANT_ASSIGN_OR_RETURN(HttpTarget target, HttpTargetOf(spec));
  target.path = "/v2/embed";
  std::vector<HttpRequest> requests;
  for (const Payload& payload : MakePayloads(spec.payload)) {
    const std::vector<std::string> texts = TextsOf(payload);
    const nlohmann::json body{{"model", spec.model},
                              {"texts", texts},
                              {"input_type", "search_document"},
                              {"embedding_types", std::vector<std::string>{"base64"}}};
    requests.push_back({.body = ToBody(body), .sequences = static_cast<int64_t>(texts.size())});
  }
  return MakeHttpTarget(
      {.name = spec.model}, std::move(target), std::move(requests),
      [tokens = TokensIn("input_tokens")](absl::string_view body, CallResult& result) {
        result.sequences = CountStrings(FromField("base64", body));
        tokens(body, result);
      });
}

absl::StatusOr<Target> MakeCohereRerankTarget(const TargetSpec& spec) {
  ATTENDANT_ASSIGN_OR_RETURN(HttpTarget target, HttpTargetOf(spec));
  target.path = "/v2/rerank";
  std::vector<HttpRequest> requests;
  for (const RerankPayload& payload : ToRerank(MakePayloads(spec.payload))) {
    const nlohmann::json body{
        {"model", spec.model}, {"query", payload.query}, {"documents", payload.texts}};
    requests.push_back(
        {.body = ToBody(body), .sequences = static_cast<int64_t>(payload.texts.size())});
  }
  return MakeHttpTarget(
      {.name = spec.model}, std::move(target), std::move(requests),
      [tokens = TokensIn("total_tokens")](absl::string_view body, CallResult& result) {
        result.sequences = CountFields("index", body);
        tokens(body, result);
      });
}

}  // namespace attendant::client
