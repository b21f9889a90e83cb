// SPDX-License-Identifier: Apache-2.0
#include "client/load/protocols/http/http_caller.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/address/host_port.h"
#include "kernels/core/status_macros.h"

namespace attendant::client {
namespace {

constexpr size_t kShownBytes = 500;  // of a body, in an error

absl::string_view Begin(absl::string_view body) { return body.substr(0, kShownBytes); }

// Every protocol here answers with an object or an array, perhaps with bytes behind it. A proxy's
// page is no answer of a model.
bool BeginsAsJson(absl::string_view body) {
  const size_t at = body.find_first_not_of(" \t\r\n");
  return at != absl::string_view::npos && (body[at] == '{' || body[at] == '[');
}

bool Succeeded(int status) { return status >= 200 && status < 300; }

absl::StatusCode CodeOfHttp(int status) {
  switch (status) {
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 501:
      return absl::StatusCode::kUnimplemented;
    case 503:
      return absl::StatusCode::kUnavailable;
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return status >= 300 && status < 500 ? absl::StatusCode::kInvalidArgument
                                           : absl::StatusCode::kInternal;
  }
}

CallResult FailedResult(const absl::Status& status) {
  return {.code = static_cast<grpc::StatusCode>(status.code()),
          .message = std::string(status.message())};
}

CallResult ResultOf(const HttpRequest& request, const absl::StatusOr<HttpAnswer>& answer,
                    const HttpCaller::Measure& measure) {
  if (!answer.ok()) return FailedResult(answer.status());
  if (!answer->body_status.ok()) return FailedResult(answer->body_status);
  if (!Succeeded(answer->code)) return FailedResult(StatusOf(*answer));
  if (!BeginsAsJson(answer->body)) {
    return FailedResult(absl::InternalError(
        absl::StrCat("HTTP ", answer->code, ": the answer is not JSON: ", Begin(answer->body))));
  }
  CallResult result{.sequences = request.sequences};
  if (request.tokens > 0) result.tokens = request.tokens;
  measure(answer->body, result);
  if (result.sequences == request.sequences) return result;
  return OtherNumber(result.sequences, request.sequences);
}

}  // namespace

absl::StatusOr<HttpTarget> ParseHttpTarget(absl::string_view address) {
  const std::string given(address);
  absl::ConsumePrefix(&address, "http://");
  absl::ConsumeSuffix(&address, "/");
  if (!ParseHostPort(address).has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--server ", given, ": this protocol takes HOST:PORT of plain HTTP"));
  }
  HttpTarget target;
  target.address = std::string(address);
  return target;
}

absl::Status StatusOf(const HttpAnswer& answer) {
  if (Succeeded(answer.code)) return absl::OkStatus();
  return absl::Status(CodeOfHttp(answer.code),
                      absl::StrCat("HTTP ", answer.code, ": ", Begin(answer.body)));
}

absl::StatusOr<std::unique_ptr<HttpCaller>> HttpCaller::Make(HttpTarget target,
                                                             std::vector<HttpRequest> requests,
                                                             Measure measure) {
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<HttpClient> http,
                             HttpClient::Make({.address = std::move(target.address),
                                               .path = std::move(target.path),
                                               .headers = std::move(target.headers)}));
  return std::unique_ptr<HttpCaller>(
      new HttpCaller(target.timeout, std::move(requests), std::move(measure), std::move(http)));
}

HttpCaller::HttpCaller(absl::Duration timeout, std::vector<HttpRequest> requests, Measure measure,
                       std::unique_ptr<HttpClient> http)
    : timeout_(timeout),
      requests_(std::move(requests)),
      measure_(std::move(measure)),
      http_(std::move(http)) {}

void HttpCaller::Start(int64_t index, int64_t, Done done) {
  const HttpRequest& request = requests_[static_cast<size_t>(index) % requests_.size()];
  http_->Send({.body = request.body, .headers = request.headers}, timeout_,
              [this, &request, done = std::move(done)](const absl::StatusOr<HttpAnswer>& answer) {
                CallResult result = ResultOf(request, answer, measure_);
                if (answer.ok()) result.resent = answer->resent;
                done(result);
              });
}

}  // namespace attendant::client
