// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <utility>

#include "client/load/protocols/http/http_load.h"
#include "client/load/protocols/protocols.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

HttpRequest MakeOpenAiRequest(const std::string& model, const Payload& payload) {
  // base64 is shorter than numbers, and as quick to make for a server.
  nlohmann::json body{{"model", model}, {"encoding_format", "base64"}};
  if (payload.texts.empty()) {
    body["input"] = payload.ids;
  } else {
    body["input"] = payload.texts;
  }
  return {.body = ToBody(body), .sequences = static_cast<int64_t>(body["input"].size())};
}

}  // namespace

absl::StatusOr<Target> MakeOpenAiTarget(const TargetSpec& spec) {
  ATTENDANT_ASSIGN_OR_RETURN(HttpTarget target, HttpTargetOf(spec));
  target.path = "/v1/embeddings";
  std::vector<HttpRequest> requests;
  for (const Payload& payload : MakePayloads(spec.payload)) {
    requests.push_back(MakeOpenAiRequest(spec.model, payload));
  }
  return MakeHttpTarget(
      {.name = spec.model, .takes_ids = true}, std::move(target), std::move(requests),
      [tokens = TokensIn("total_tokens")](absl::string_view body, CallResult& result) {
        result.sequences = CountFields("embedding", body);
        tokens(body, result);
      });
}

}  // namespace attendant::client
