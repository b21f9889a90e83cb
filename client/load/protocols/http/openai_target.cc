// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/load/protocols/http/http_caller.h"
#include "client/load/protocols/protocols.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr absl::string_view kTotalTokens = "\"total_tokens\":";

HttpRequest MakeOpenAiRequest(const std::string& model, const Payload& payload) {
  // base64 is shorter than numbers, and as quick to make for a server.
  nlohmann::json body{{"model", model}, {"encoding_format", "base64"}};
  if (payload.texts.empty()) {
    body["input"] = payload.ids;
  } else {
    body["input"] = payload.texts;
  }
  return {.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
          .sequences = static_cast<int64_t>(body["input"].size())};
}

// Looks for one number in an answer that holds thousands.
void MeasureOpenAi(absl::string_view body, CallResult& result) {
  const size_t at = body.rfind(kTotalTokens);
  if (at == absl::string_view::npos) return;
  absl::string_view rest = body.substr(at + kTotalTokens.size());
  rest = rest.substr(0, rest.find_first_of(",}"));
  int64_t tokens = 0;
  if (absl::SimpleAtoi(rest, &tokens)) result.tokens = tokens;
}

// One request, to find out that a server cannot be reached, or does not have the model.
absl::Status Probe(Caller& caller) {
  absl::Notification answered;
  absl::Status status;
  caller.Start(0, 0, [&](const CallResult& result) {
    status = absl::Status(static_cast<absl::StatusCode>(result.code), result.message);
    answered.Notify();
  });
  answered.WaitForNotification();
  return status;
}

}  // namespace

absl::StatusOr<Target> MakeOpenAiTarget(const TargetSpec& spec) {
  const TlsOptions& tls = spec.connect.tls;
  if (spec.model.empty()) {
    return absl::FailedPreconditionError("--protocol openai needs a --model");
  }
  if (tls.enabled || !tls.ca_file.empty() || !tls.cert_file.empty() || !tls.key_file.empty() ||
      !spec.connect.api_key_file.empty() || !spec.connect.trace_id.empty()) {
    return absl::FailedPreconditionError(
        "--protocol openai is plain HTTP, without TLS, API keys and traces");
  }
  ATTENDANT_ASSIGN_OR_RETURN(HttpTarget target, ParseHttpTarget(spec.connect.target));
  target.path = "/v1/embeddings";
  target.timeout = spec.connect.timeout;
  std::vector<HttpRequest> requests;
  for (const Payload& payload : MakePayloads(spec.payload)) {
    requests.push_back(MakeOpenAiRequest(spec.model, payload));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      std::unique_ptr<HttpCaller> caller,
      HttpCaller::Make(std::move(target), std::move(requests), MeasureOpenAi));
  ATTENDANT_RETURN_IF_ERROR(Probe(*caller));
  return Target{.model = spec.model, .caller = std::move(caller)};
}

}  // namespace attendant::client
