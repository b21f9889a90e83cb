// SPDX-License-Identifier: Apache-2.0
#include "client/load/protocols/http/http_load.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "client/call_metadata.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr uint64_t kMaxDescriptionBytes = uint64_t{4} << 20;

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

absl::StatusOr<HttpTarget> HttpTargetOf(const TargetSpec& spec) {
  const TlsOptions& tls = spec.connect.tls;
  if (tls.enabled || !tls.ca_file.empty() || !tls.cert_file.empty() || !tls.key_file.empty() ||
      !spec.connect.trace_id.empty()) {
    return absl::FailedPreconditionError("this protocol is plain HTTP, without TLS and traces");
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::string key, ReadApiKey(spec.connect.api_key_file));
  ATTENDANT_ASSIGN_OR_RETURN(HttpTarget target, ParseHttpTarget(spec.connect.target));
  target.timeout = spec.connect.timeout;
  target.headers = {{kContentType, "application/json"}};
  if (!key.empty()) target.headers.emplace_back("Authorization", absl::StrCat("Bearer ", key));
  return target;
}

std::string ToBody(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<HttpAnswer> HttpGet(const HttpTarget& target) {
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<HttpClient> http,
                             HttpClient::Make({.address = target.address,
                                               .path = target.path,
                                               .method = "GET",
                                               .headers = target.headers,
                                               .keep_alive = false,
                                               .max_answer_bytes = kMaxDescriptionBytes}));
  absl::Notification answered;
  absl::StatusOr<HttpAnswer> answer;
  http->Send({.body = ""}, target.timeout, [&](absl::StatusOr<HttpAnswer> result) {
    answer = std::move(result);
    answered.Notify();
  });
  answered.WaitForNotification();
  if (answer.ok()) ATTENDANT_RETURN_IF_ERROR(answer->body_status);
  return answer;
}

absl::StatusOr<Target> MakeHttpTarget(HttpModel model, HttpTarget target,
                                      std::vector<HttpRequest> requests,
                                      HttpCaller::Measure measure) {
  ATTENDANT_ASSIGN_OR_RETURN(
      std::unique_ptr<HttpCaller> caller,
      HttpCaller::Make(std::move(target), std::move(requests), std::move(measure)));
  ATTENDANT_RETURN_IF_ERROR(Probe(*caller));
  return Target{
      .model = std::move(model.name), .caller = std::move(caller), .sends_words = !model.takes_ids};
}

absl::string_view FromField(absl::string_view name, absl::string_view body) {
  const std::string quoted = absl::StrCat("\"", name, "\"");
  for (size_t at = body.find(quoted); at != absl::string_view::npos; at = body.find(quoted)) {
    body.remove_prefix(at + quoted.size());
    absl::string_view value = absl::StripLeadingAsciiWhitespace(body);
    if (absl::ConsumePrefix(&value, ":")) return absl::StripLeadingAsciiWhitespace(value);
  }
  return {};
}

int64_t CountFields(absl::string_view name, absl::string_view body) {
  int64_t count = 0;
  while (!(body = FromField(name, body)).empty()) ++count;
  return count;
}

HttpCaller::Measure TokensIn(absl::string_view name) {
  return [field = absl::StrCat("\"", name, "\"")](absl::string_view body, CallResult& result) {
    const size_t at = body.rfind(field);
    if (at == absl::string_view::npos) return;
    body.remove_prefix(at + field.size());
    body.remove_prefix(std::min(body.find_first_not_of(" :\t\r\n"), body.size()));
    body = body.substr(0, body.find_first_not_of("0123456789"));
    int64_t tokens = 0;
    if (absl::SimpleAtoi(body, &tokens)) result.tokens = tokens;
  };
}

absl::StatusOr<std::string> ModelHeader(const std::string& model) {
  if (std::all_of(model.begin(), model.end(), absl::ascii_isgraph)) return model;
  return absl::FailedPreconditionError(
      absl::StrCat("--model ", model, ": a header has only visible ASCII characters"));
}

}  // namespace attendant::client
