// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "client/load/protocols/http/http_load.h"
#include "client/load/protocols/protocols.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

struct TeiServer {
  HttpTarget target;
  std::string model;
  int64_t max_tokens = 0;  // of a text
};

absl::StatusOr<TeiServer> AskTeiServer(const TargetSpec& spec) {
  TeiServer server;
  ATTENDANT_ASSIGN_OR_RETURN(server.target, HttpTargetOf(spec));
  if (!spec.model.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::string model, ModelHeader(spec.model));
    server.target.headers.emplace_back("x-model", model);
  }
  server.target.path = "/info";
  ATTENDANT_ASSIGN_OR_RETURN(const HttpAnswer answer, HttpGet(server.target));
  ATTENDANT_RETURN_IF_ERROR(StatusOf(answer));
  const nlohmann::json info =
      nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const bool readable = info.is_object() && info.contains("model_id") &&
                        info["model_id"].is_string() && info.contains("max_input_length") &&
                        info["max_input_length"].is_number_integer();
  if (!readable) return absl::InternalError("/info does not tell model_id and max_input_length");
  server.model = info["model_id"].get<std::string>();
  server.max_tokens = std::max<int64_t>(1, info["max_input_length"].get<int64_t>());
  return server;
}

}  // namespace

absl::StatusOr<Target> MakeTeiHttpTarget(const TargetSpec& spec) {
  ATTENDANT_ASSIGN_OR_RETURN(TeiServer server, AskTeiServer(spec));
  server.target.path = "/embed";
  PayloadSpec payloads = spec.payload;
  payloads.lengths.Limit(server.max_tokens);
  std::vector<HttpRequest> requests;
  for (const Payload& payload : MakePayloads(payloads)) {
    const std::vector<std::string> texts = TextsOf(payload);
    requests.push_back({.body = ToBody({{"inputs", texts}, {"truncate", true}}),
                        .sequences = static_cast<int64_t>(texts.size())});
  }
  return MakeHttpTarget(
      {.name = server.model}, std::move(server.target), std::move(requests),
      [](absl::string_view body, CallResult& result) {  // an array of arrays of numbers
        result.sequences = -1;
        for (size_t at = 0; (at = body.find(']', at)) != body.npos; ++at) ++result.sequences;
      });
}

absl::StatusOr<Target> MakeTeiRerankTarget(const TargetSpec& spec) {
  ATTENDANT_ASSIGN_OR_RETURN(TeiServer server, AskTeiServer(spec));
  server.target.path = "/rerank";
  PayloadSpec payload_spec = spec.payload;
  payload_spec.lengths.Limit(std::max<int64_t>(1, server.max_tokens / 2));  // of a pair
  std::vector<HttpRequest> requests;
  for (const RerankPayload& payload : ToRerank(MakePayloads(payload_spec))) {
    requests.push_back(
        {.body = ToBody({{"query", payload.query}, {"texts", payload.texts}, {"truncate", true}}),
         .sequences = static_cast<int64_t>(payload.texts.size())});
  }
  return MakeHttpTarget({.name = server.model}, std::move(server.target), std::move(requests),
                        [](absl::string_view body, CallResult& result) {
                          result.sequences = CountFields("index", body);
                        });
}

}  // namespace attendant::client
